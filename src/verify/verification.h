// Attacks sandboxes of a policy, each attack first where nothing forbids it, and says what became of all.
#pragma once

#include <set>
#include <string>

#include "base/error.h"
#include "policy/draft.h"
#include "verify/report.h"

namespace sandy::verify {

struct Options {
  policy::PolicyDraft draft;
  std::string policy_file;           // where it was read from; "": from flags alone
  bool names_workspace = false;      // otherwise the workspace is a directory of ours
  std::set<AttackClass> classes;     // to be tried
};

// The error: no sandbox of this policy can be started, so there is nothing to attack.
//
// The attacks are on fresh sandboxes, in which nothing else runs. Two things of the policy are left out, since neither lets anything be done: `limits.wall_time`, which
// would end them midway, and `network.publish`, whose ports a sandbox that runs may have.
Result<Report> verify(Options options);

}  // namespace sandy::verify
