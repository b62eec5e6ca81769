// Symbolic constants that a policy may use for argument values and error numbers. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"

namespace sandy::seccomp {

// "TIOCSTI", "CLONE_NEWNS|CLONE_NEWUSER", "0xffffffff", "17". Every listed constant has the same
// value on all architectures of syscall_table.h. The error has an empty `what`, for the caller to
// fill in.
Result<std::uint64_t> parse_value(std::string_view text);

// "EPERM" → 1. The numbers are the same on all architectures of syscall_table.h.
std::optional<int> errno_from_name(std::string_view name);
std::string errno_name(int number);  // "EPERM", or the number where it has no name

}  // namespace sandy::seccomp
