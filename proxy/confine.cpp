#include "proxy/confine.h"

#include <grp.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>

#include "base/unique_fd.h"
#include "plan/plan.h"
#include "plan/seccomp/seccomp_compile.h"

namespace sandy::proxy {
namespace {

constexpr rlim_t kMaxDescriptors = 24'000;  // Control counts with two for each connection, and more while it is dialled
constexpr rlim_t kMaxMemory = rlim_t{2} << 30;

#if defined(__SANITIZE_ADDRESS__)
constexpr bool kSanitized = true;  // its shadow memory is terabytes of addresses, and its runtime makes calls of its own
#else
constexpr bool kSanitized = false;
#endif

#if defined(__x86_64__)
constexpr seccomp::Arch kArch = seccomp::Arch::x86_64;
#elif defined(__aarch64__)
constexpr seccomp::Arch kArch = seccomp::Arch::aarch64;
#endif

std::unexpected<Error> failed(const char* step) { return fail("sandy-proxy", std::string(step) + ": " + errno_text(errno)); }

bool limit(__rlimit_resource resource, rlim_t value) {
  rlimit current{};
  if (::getrlimit(resource, &current) != 0) return false;
  const rlim_t most = std::min(current.rlim_max, value);
  const rlimit wanted{most, most};
  return ::setrlimit(resource, &wanted) == 0;
}

// landlock(7). The header of Debian 12's kernel lacks the newer parts, so its structure and numbers are written out.
struct LandlockRuleset {
  std::uint64_t file_system, network, scoped;
};
constexpr std::uint64_t kFileSystem[] = {0, 0x1FFF, 0x3FFF, 0x7FFF, 0x7FFF, 0xFFFF};  // by version: all rights to files that it knows
constexpr std::uint64_t kAbstractSockets = 1, kSignals = 2;                        // scopes, since version 6

Result<void> leave_file_system() {
  constexpr long kCreate = 444, kRestrict = 446;
  const long version = ::syscall(kCreate, nullptr, 0, 1);
  if (version <= 0) return {};  // not in this kernel: seccomp refuses every call with a path
  LandlockRuleset ruleset{};
  ruleset.file_system = kFileSystem[std::min<long>(version, 5)];
  if (version >= 6) ruleset.scoped = kAbstractSockets | kSignals;
  const std::size_t size = version >= 6 ? sizeof ruleset : version >= 4 ? 16 : 8;
  const UniqueFd fd(static_cast<int>(::syscall(kCreate, &ruleset, size, 0)));
  if (!fd) return failed("Landlock");
  if (::syscall(kRestrict, fd.get(), 0) != 0) return failed("Landlock");
  return {};
}

}  // namespace

std::size_t descriptor_limit() {
  rlimit current{};
  if (::getrlimit(RLIMIT_NOFILE, &current) != 0) return 0;
  return static_cast<std::size_t>(std::min(current.rlim_max, kMaxDescriptors));
}

Result<void> confine() {
  if (::geteuid() == 0 && (::setgroups(0, nullptr) != 0 || ::setresgid(plan::kNobody, plan::kNobody, plan::kNobody) != 0 ||
                           ::setresuid(plan::kNobody, plan::kNobody, plan::kNobody) != 0)) {
    return failed("becoming an unprivileged user");
  }
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || ::prctl(PR_SET_DUMPABLE, 0) != 0) return failed("prctl");
  if (!limit(RLIMIT_CORE, 0) || !limit(RLIMIT_NOFILE, kMaxDescriptors) || (!kSanitized && !limit(RLIMIT_AS, kMaxMemory))) return failed("limits");
  if (auto left = leave_file_system(); !left) return left;
  if (kSanitized) return {};
  const auto program = seccomp::builtin_program("proxy", kArch);
  if (!program) return std::unexpected(program.error());
  const sock_fprog filter{static_cast<unsigned short>(program->size()), const_cast<sock_filter*>(program->data())};
  if (::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &filter) != 0) return failed("seccomp");
  return {};
}

}  // namespace sandy::proxy
