// A classic BPF interpreter over struct seccomp_data, so that filters are tested without a kernel.
// Pure. Instruction set: the kernel's net/core/filter.c (bpf_check_classic) and kernel/seccomp.c
// (seccomp_check_filter).
#pragma once

#include <linux/filter.h>

#include <cstdint>
#include <span>

#include "plan/seccomp/decide.h"

namespace sandy::seccomp {

// What the kernel would refuse to load is an error here too: loads out of range or not aligned,
// jumps past the end, unknown instructions, an end without a return, scratch memory read before it
// was written on every way there.
Result<void> check_program(std::span<const sock_filter> program);

// The SECCOMP_RET_* value for `call`. Terminates: jumps go forward only.
Result<std::uint32_t> evaluate(std::span<const sock_filter> program, const Call& call);

// "allow", "errno EPERM", …: a SECCOMP_RET_* value as the policy grammar writes actions.
std::string verdict_text(std::uint32_t bpf_return);

}  // namespace sandy::seccomp
