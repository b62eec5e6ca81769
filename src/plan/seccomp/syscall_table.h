// System call names and numbers of the architectures that Sandy runs on. Pure.
// Names come from libseccomp's tables; calls newer than the oldest libseccomp we build with are
// added here.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace sandy::seccomp {

enum class Arch { x86_64, aarch64 };
inline constexpr std::array kArches = {Arch::x86_64, Arch::aarch64};

std::string_view arch_name(Arch arch);                      // "x86_64", "aarch64"
std::optional<Arch> arch_from_name(std::string_view name);  // also "amd64", "arm64"
Arch native_arch();                                         // of this program

// AUDIT_ARCH_* of <linux/audit.h>: what the kernel puts in seccomp_data.arch.
std::uint32_t audit_arch(Arch arch);

// x32 shares x86-64's AUDIT_ARCH and has this bit set in the number (asm/unistd.h,
// __X32_SYSCALL_BIT).
inline constexpr std::uint32_t kX32Bit = 0x40000000;

// The number of `name` on `arch`; none when the architecture lacks the call or the name is unknown.
std::optional<std::uint32_t> syscall_number(Arch arch, std::string_view name);

// Whether `name` is a system call of any Linux architecture, so that "not on this one" and
// "misspelt" differ.
bool syscall_known(std::string_view name);

}  // namespace sandy::seccomp
