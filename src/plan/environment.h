// The environment of a sandbox's commands: a small set made here, then what the policy passes and sets.
#pragma once

#include "plan/plan.h"

namespace sandy::plan {

// NAME=value, sorted. The caller's environment is not inherited: only the names in environment.pass, and the
// directories of PATH that the sandbox can see, are taken from it.
std::vector<std::string> plan_environment(const policy::PolicyFields& policy, const HostFacts& facts, const SandboxPlan& plan);

// The caller's PATH as the sandbox can use it: first the usual directories, then each entry that lies, links resolved
// (facts.paths), in a tree that the plan shows. `lost`, if given, gets the entries that don't.
std::string sandbox_path(const HostFacts& facts, const SandboxPlan& plan, std::vector<std::string>* lost = nullptr);

// PATH's entries, in order, each once.
std::vector<std::string> split_path(const std::string& path);

}  // namespace sandy::plan
