// What the kernel, the user and the rest of the machine give to sandboxes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "host/capability.h"
#include "plan/host_facts.h"

namespace sandy::host {

// By trying: in child processes where it leaves a mark on a process.
std::vector<Capability> namespace_capabilities();  // "user namespaces", "fresh /proc"
Capability seccomp_filters();
Capability landlock();

Capability state_directory();
// The launcher and the agent: found, and of this version.
Capability own_programs();
// The user that the sandbox's processes have on the host.
Capability sandbox_user();
// What control groups can limit. `lost`: a sandbox that was tried did without them. `degraded`: the limits that were not enforced for it.
Capability cgroup_limits(const plan::CgroupFacts& facts, bool lost, const std::vector<std::string>& degraded);

// Pure.
Capability kernel_release(std::string_view release);  // uname(2)
Capability lost_path(const std::vector<std::string>& lost);

struct WslFacts {
  int generation = 0;               // wsl_generation()
  bool interop = false;             // Windows programs are started by the kernel (binfmt_misc)
  bool systemd = true;              // pid 1 is systemd
  bool on_windows_drive = false;    // the current directory is on one
};
Capability wsl(const WslFacts& facts);
WslFacts wsl_facts();

}  // namespace sandy::host
