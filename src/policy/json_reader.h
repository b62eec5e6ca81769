// Policy files: JSON text to a draft. Checks shape (keys, types, limits); what the values mean is
// checked by validate().
#pragma once

#include <string_view>

#include "base/error.h"
#include "policy/draft.h"

namespace sandy::policy {

inline constexpr std::size_t kMaxRules = 4096;  // read, write, deny and network rules together
inline constexpr std::size_t kMaxText = 4096;   // bytes of a string or path: PATH_MAX
inline constexpr std::size_t kMaxVariableValue = 32768;  // bytes of an environment variable's value
inline constexpr std::size_t kMaxPolicyBytes = 1024 * 1024;

// Refuses an unknown or duplicate key, a wrong type, and all that parse_json() refuses, with the
// key path and the reason. Time and memory are bounded whatever the text is.
Result<PolicyDraft> read_policy(std::string_view json);

}  // namespace sandy::policy
