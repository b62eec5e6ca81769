#include "plan/seccomp/syscall_table.h"

#include <linux/audit.h>
#include <seccomp.h>

#include <algorithm>

namespace sandy::seccomp {
namespace {

struct NewerCall {
  std::string_view name;
  std::int16_t x86_64, aarch64;  // -1: the architecture lacks it
};

// Calls that came after Linux 6.5, which a distribution's libseccomp may not know. All
// architectures share the numbers from 424 on (Documentation/process/adding-syscalls.rst);
// arch/x86/entry/syscalls/syscall_64.tbl.
constexpr NewerCall kNewerCalls[] = {
    {"uretprobe", 335, -1},          {"uprobe", 336, -1},
    {"cachestat", 451, 451},         {"fchmodat2", 452, 452},
    {"map_shadow_stack", 453, 453},  {"futex_wake", 454, 454},
    {"futex_wait", 455, 455},        {"futex_requeue", 456, 456},
    {"statmount", 457, 457},         {"listmount", 458, 458},
    {"lsm_get_self_attr", 459, 459}, {"lsm_set_self_attr", 460, 460},
    {"lsm_list_modules", 461, 461},  {"mseal", 462, 462},
    {"setxattrat", 463, 463},        {"getxattrat", 464, 464},
    {"listxattrat", 465, 465},       {"removexattrat", 466, 466},
    {"open_tree_attr", 467, 467},    {"file_getattr", 468, 468},
    {"file_setattr", 469, 469},      {"listns", 470, 470},
};

const NewerCall* newer_call(std::string_view name) {
  const auto* found = std::ranges::find(kNewerCalls, name, &NewerCall::name);
  return found == std::end(kNewerCalls) ? nullptr : found;
}

int resolve(Arch arch, std::string_view name) {
  if (name.find('\0') != std::string_view::npos)
    return __NR_SCMP_ERROR;  // would match what stands before it
  const std::string terminated(name);
  return seccomp_syscall_resolve_name_arch(
      arch == Arch::x86_64 ? SCMP_ARCH_X86_64 : SCMP_ARCH_AARCH64, terminated.c_str());
}

}  // namespace

std::string_view arch_name(Arch arch) {
  return arch == Arch::x86_64 ? "x86_64" : "aarch64";
}

std::optional<Arch> arch_from_name(std::string_view name) {
  if (name == "x86_64" || name == "amd64") return Arch::x86_64;
  if (name == "aarch64" || name == "arm64") return Arch::aarch64;
  return std::nullopt;
}

Arch native_arch() {
#if defined(__x86_64__) && !defined(__ILP32__)
  return Arch::x86_64;
#elif defined(__aarch64__)
  return Arch::aarch64;
#else
#error "Sandy runs on x86-64 and aarch64"
#endif
}

std::uint32_t audit_arch(Arch arch) {
  return arch == Arch::x86_64 ? AUDIT_ARCH_X86_64 : AUDIT_ARCH_AARCH64;
}

std::optional<std::uint32_t> syscall_number(Arch arch, std::string_view name) {
  if (const NewerCall* call = newer_call(name)) {
    const int number = arch == Arch::x86_64 ? call->x86_64 : call->aarch64;
    if (number < 0) return std::nullopt;
    return static_cast<std::uint32_t>(number);
  }
  // Negative numbers other than the error stand for calls that only other architectures have.
  const int number = resolve(arch, name);
  if (number < 0) return std::nullopt;
  return static_cast<std::uint32_t>(number);
}

bool syscall_known(std::string_view name) {
  return newer_call(name) != nullptr || resolve(Arch::x86_64, name) != __NR_SCMP_ERROR;
}

}  // namespace sandy::seccomp
