// OCI / Docker seccomp profiles read into a Policy.
// Formats: OCI runtime-spec config-linux.md#seccomp; moby and containers/common profiles, which add
// archMap, includes, excludes, errno names.
//
// Where these formats leave room, the strict reading is taken:
//   - the sandbox has no capability: rows that include one are not taken, rows that exclude one
//   are;
//   - foreign ABIs (architectures, archMap.subArchitectures) stay killed, whatever the profile
//   lists;
//   - of several rows that match one call the strictest decides;
//   - a permitting row for a kernel newer than kMinimumKernel is not taken, a refusing one is;
//   - an unknown call in a permitting row is left out (the default decides), in a refusing row it
//   is an error where
//     leaving it out would permit it.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "plan/seccomp/seccomp_policy.h"

namespace sandy::seccomp {

struct KernelVersion {
  unsigned major, minor;
  auto operator<=>(const KernelVersion&) const = default;
};

// What every kernel that can run Sandy has; newer ones can't be told apart without asking the
// machine.
inline constexpr KernelVersion kMinimumKernel{4, 18};

Result<Policy> parse_oci_profile(const nlohmann::json& root, const std::string& name);

}  // namespace sandy::seccomp
