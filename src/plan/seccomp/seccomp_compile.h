// A policy compiled to the classic BPF program that the kernel runs (seccomp(2),
// SECCOMP_SET_MODE_FILTER). Pure.
//
// The code is our own, not libseccomp's, because libseccomp can't say these policies: it drops a
// refusing row with tests in silence when another row permits the same call without tests (ioctl
// but not TIOCSTI), and it has no "masked not equal". tests/seccomp compares both where both can.
#pragma once

#include <linux/filter.h>

#include <string_view>
#include <vector>

#include "plan/seccomp/seccomp_policy.h"

namespace sandy::seccomp {

using Program = std::vector<sock_filter>;

// At most BPF_MAXINSNS (4096) instructions; a policy that needs more is an error.
Result<Program> compile(const Policy& policy, Arch arch, const CompileOptions& options = {});

// What compile(*builtin(name), …) gives, made when Sandy was built: nothing is parsed or compiled
// at run time.
Result<Program> builtin_program(std::string_view name, Arch arch,
                                const CompileOptions& options = {});

// The program as bwrap --seccomp FD reads it: an array of struct sock_filter. Valid as long as
// `program`.
std::string_view as_bytes(const Program& program);

}  // namespace sandy::seccomp
