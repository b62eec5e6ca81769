// The parts of validate() that look at one section alone; the one for filesystem is in
// filesystem_rules.h.
#pragma once

#include "base/error.h"
#include "policy/caller.h"
#include "policy/draft.h"
#include "policy/policy.h"

namespace sandy::policy {

Result<Network> check_network(const NetworkDraft& draft);
Result<Limits> check_limits(const LimitsDraft& draft);
Result<Seccomp> check_seccomp(const SeccompDraft& draft, const Caller& caller);
Result<Environment> check_environment(const EnvironmentDraft& draft);
Result<Process> check_process(const ProcessDraft& draft);

}  // namespace sandy::policy
