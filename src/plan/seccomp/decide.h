// The policy's meaning, computed straight from its rows: what compiled programs are tested against.
// Pure.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "plan/seccomp/seccomp_policy.h"

namespace sandy::seccomp {

// A system call as the kernel shows it to a filter (struct seccomp_data).
struct Call {
  std::uint32_t audit_arch = 0, number = 0;
  std::array<std::uint64_t, 6> args{};
};

Action decide(const Policy& policy, Arch arch, const CompileOptions& options, const Call& call);

// The rows that can decide one number on `arch`, in the order they are tried, up to the first
// without tests.
struct NumberRows {
  std::uint32_t number = 0;
  std::vector<const Row*> rows;  // point into the policy
};

// All numbers that some row names, ascending.
std::vector<NumberRows> rows_by_number(const Policy& policy, Arch arch,
                                       const CompileOptions& options);

}  // namespace sandy::seccomp
