// What the paths of a policy are on this host.
#pragma once

#include <string>

#include "base/error.h"
#include "plan/host_facts.h"
#include "policy/policy.h"

namespace sandy::plan {

// The fact about a path of the policy; an error if nobody looked it up.
Result<const HostPath*> fact_of(const HostFacts& facts, const std::string& path, const std::string& key);

// What policy::validate() checked of the paths as they were written, of what they are: two spellings of one file are one path here. And none may
// pass a symbolic link in a tree that the policy makes writable: a command of one sandbox could redirect the next one's rule. A path need not
// exist for this.
Result<void> check_resolved(const policy::Filesystem& filesystem, const HostFacts& facts);

}  // namespace sandy::plan
