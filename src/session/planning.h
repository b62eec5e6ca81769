// From a policy's text to a plan on this host: the pure parts and the probes between them, in their order.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "plan/plan.h"
#include "policy/caller.h"
#include "policy/draft.h"
#include "policy/policy.h"
#include "policy/weakening.h"

namespace sandy::session {

struct PlannedSandbox {
  policy::SandboxPolicy policy;
  plan::SandboxPlan plan;
  std::string seccomp;  // the compiled filter for this machine: struct sock_filter[]
};

// Who asks, for policy::validate(): this process's user and working directory.
policy::Caller this_caller();

Result<policy::SandboxPolicy> validate_here(const policy::PolicyDraft& draft);

// What a policy gives up against the default sandbox, on this host. Refuses one whose paths are here what it may not name. A path that isn't there
// is no fault: the policy may be for another host.
Result<std::vector<policy::Weakening>> weakenings_here(const policy::SandboxPolicy& policy);

// Whether this machine has what a sandbox of any policy needs, as far as that is known without starting one.
Result<void> check_machine();

// A policy that has nothing but the limits that a sandbox can be given while it runs.
Result<policy::Limits> parse_running_limits(std::string_view json);

// What this machine's control groups can limit.
const plan::CgroupFacts& cgroups_here();

// The control group that a plan for this policy will have.
std::optional<plan::CgroupPlan> cgroup_plan_here(const policy::SandboxPolicy& policy);

// Paths of the policy that are not there on this host, "KEY: PATH" each: a sandbox would not start.
Result<std::vector<std::string>> missing_here(const policy::SandboxPolicy& policy);

// Resolves the policy's paths, checks again what they really are, makes the plan and compiles the filter. Starts nothing.
// `kept`: files that are not writable in the sandbox, as they are about it: where the policy was read from, the audit log. Sandy's own programs and a seccomp
// policy's file are not either. Empty ones are none.
Result<PlannedSandbox> plan_here(const policy::SandboxPolicy& policy, const std::vector<std::string>& kept = {});

// The policy's seccomp rows for this machine, as `sandy plan` prints them, and what it permits that the default refuses.
Result<std::vector<std::string>> seccomp_rows(const policy::Seccomp& policy);
Result<std::vector<std::string>> seccomp_weakenings(const policy::Seccomp& policy);

// read_policy(), validate_here() and plan_here().
Result<PlannedSandbox> plan_json(std::string_view json, const std::vector<std::string>& kept = {});

}  // namespace sandy::session
