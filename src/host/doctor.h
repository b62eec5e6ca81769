// What this machine can enforce, part by part: the findings of `sandy doctor`.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "host/bubblewrap_capabilities.h"
#include "host/capability.h"
#include "plan/host_facts.h"

namespace sandy::host {

// What only a real start can tell; session/ makes it.
struct StartFindings {
  std::optional<Error> error;         // nothing: a whole sandbox started, and a command ran in it
  std::string detail;                 // what was seen of it; only without an error
  std::vector<std::string> degraded;  // of its plan, as it was carried out
  plan::CgroupFacts cgroup;
  bool lost_cgroup = false;           // it was planned with control groups, and did without
  std::optional<std::vector<std::string>> lost_path;  // plan::sandbox_path's; nothing where there was no plan
};

// All capabilities, in an order and with names that stay the same.
std::vector<Capability> examine_machine(const BubblewrapExamination& bubblewrap, const StartFindings& start);

// The order of examine_machine(), from what was found. Where a whole sandbox did start, what this process may not do by itself (as under AppArmor,
// which can allow namespaces to bubblewrap alone) is no lack. Pure.
std::vector<Capability> reconcile(std::vector<Capability> found, bool started);

}  // namespace sandy::host
