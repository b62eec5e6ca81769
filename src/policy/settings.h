// The parts of validate() that look at one section alone; those for filesystem and
// network are in filesystem_rules.h and network.h.
#pragma once

#include "base/error.h"
#include "policy/caller.h"
#include "policy/draft.h"
#include "policy/policy.h"

namespace sandy::policy {

Result<std::string> check_description(const OptionalText& draft);
Result<Limits> check_limits(const LimitsDraft& draft);
Result<Seccomp> check_seccomp(const SeccompDraft& draft, const Caller& caller);
Result<Environment> check_environment(const EnvironmentDraft& draft);
Result<Process> check_process(const ProcessDraft& draft);

}  // namespace sandy::policy
