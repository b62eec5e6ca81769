// Readers of the two file formats that parse_policy() tells apart. Internal to this folder.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "plan/seccomp/seccomp_policy.h"

namespace sandy::seccomp {

Result<Policy> parse_sandy_policy(const nlohmann::json& root, const std::string& name);

// Limits that both formats share; the kernel takes programs of at most 4096 instructions
// (BPF_MAXINSNS).
inline constexpr std::size_t kMaxRows = 1000, kMaxNamesPerRow = 600, kMaxTests = 12,
                             kMaxValues = 128;

// A row's test in itself: index, widths, values that can never hold. The error has an empty `what`.
Result<void> check_test(const ArgTest& test);

}  // namespace sandy::seccomp
