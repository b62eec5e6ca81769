// What a policy gives up against the default sandbox, in words for the person who has to decide.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "policy/policy.h"

namespace sandy::policy {

struct Weakening {
  std::string key;       // where the policy says so: "filesystem.write[0]", or "--write"
  std::string sentence;  // printable, one line, without a full stop: "commands can change and
                         // delete what is in /srv/data"
  bool operator==(const Weakening&) const = default;
};

// In the order of the policy file; empty for the default policy and for one that is only stricter.
// A denied tree, a lower limit and seccomp "strict" weaken nothing. `sockets`: the paths of those
// rules that name a socket of this host.
std::vector<Weakening> weakenings(const SandboxPolicy& policy,
                                  const std::set<std::string>& sockets = {});

}  // namespace sandy::policy
