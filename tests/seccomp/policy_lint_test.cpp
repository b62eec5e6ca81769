// What the built-in policies must have beyond being valid: reasons, and no careless permission.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "plan/seccomp/decide.h"
#include "plan/seccomp/seccomp_policy.h"

namespace sandy::seccomp {
namespace {

// Calls that reach other processes, the kernel, the machine, namespaces or devices, or that have a
// record of faults. One that is permitted stands in a row with a reason of its own, not among
// others.
const std::set<std::string> kDangerous = {
    "add_key",
    "bpf",
    "chroot",
    "clone",
    "clone3",
    "delete_module",
    "fanotify_init",
    "finit_module",
    "fsconfig",
    "fsmount",
    "fsopen",
    "fspick",
    "init_module",
    "io_uring_enter",
    "io_uring_register",
    "io_uring_setup",
    "ioctl",
    "ioperm",
    "iopl",
    "kcmp",
    "kexec_file_load",
    "kexec_load",
    "keyctl",
    "landlock_create_ruleset",
    "lookup_dcookie",
    "memfd_secret",
    "migrate_pages",
    "mknod",
    "mknodat",
    "modify_ldt",
    "mount",
    "mount_setattr",
    "move_mount",
    "move_pages",
    "name_to_handle_at",
    "open_by_handle_at",
    "open_tree",
    "open_tree_attr",
    "openat2",
    "perf_event_open",
    "personality",
    "pidfd_getfd",
    "pivot_root",
    "process_madvise",
    "process_vm_readv",
    "process_vm_writev",
    "ptrace",
    "quotactl",
    "quotactl_fd",
    "reboot",
    "request_key",
    "seccomp",
    "setns",
    "socket",
    "socketpair",
    "swapoff",
    "swapon",
    "umount2",
    "unshare",
    "uretprobe",
    "userfaultfd",
    "vhangup",
};
constexpr std::size_t kMaxCompany = 3;       // names in a row that permits one of them
constexpr std::size_t kShortestReason = 25;  // "adds file system rules, …"

// Arguments that the kernel declares as int, unsigned int or umode_t, or cuts to 32 bits: comparing
// 64 would let a caller past a refusal by setting high bits, and refuse honest callers that leave
// garbage there.
bool kernel_uses_low_half(const std::string& syscall, unsigned arg) {
  static const std::map<std::string, std::set<unsigned>> kInts = {
      {"socket", {0, 1, 2}}, {"socketpair", {0, 1, 2}}, {"ioctl", {0, 1}},
      {"clone", {0}},        {"unshare", {0}},          {"personality", {0}},
      {"mknod", {1}},        {"mknodat", {0, 2}},       {"chmod", {1}},
      {"fchmod", {0, 1}},    {"fchmodat", {0, 2}},      {"fchmodat2", {0, 2, 3}},
      {"creat", {1}},        {"open", {1, 2}},          {"openat", {0, 2, 3}},
      {"fcntl", {0, 1}},     {"prlimit64", {0, 1}},
  };
  const auto found = kInts.find(syscall);
  return found != kInts.end() && found->second.contains(arg);
}

// Pointers, which a row may test for being there.
bool is_pointer(const std::string& syscall, unsigned arg) {
  return syscall == "prlimit64" && arg >= 2;
}

class PolicyLint : public testing::TestWithParam<const char*> {
 protected:
  const Policy& policy() {
    const auto policy = builtin(GetParam());
    EXPECT_TRUE(policy) << policy.error().text();
    return **policy;
  }
};

TEST_P(PolicyLint, EveryRowHasAReason) {
  EXPECT_GE(policy().default_reason.size(), kShortestReason);
  for (const Row& row : policy().rows) EXPECT_GE(row.reason.size(), 7U) << row.origin;
}

TEST_P(PolicyLint, EachDangerousPermissionHasAReasonOfItsOwn) {
  std::size_t seen = 0;
  for (const Row& row : policy().rows) {
    for (const std::string& name : row.syscalls) {
      if (!kDangerous.contains(name)) continue;
      ++seen;
      if (!row.action.permits()) continue;
      EXPECT_LE(row.syscalls.size(), kMaxCompany)
          << row.origin << " permits " << name << " among others";
      EXPECT_GE(row.reason.size(), kShortestReason) << row.origin << " permits " << name;
    }
  }
  EXPECT_GE(seen, kDangerous.size()) << "a dangerous call that no row names";
}

TEST_P(PolicyLint, LastDecisionIsARefusal) {
  EXPECT_FALSE(policy().default_action.permits());
  EXPECT_EQ(policy().foreign_abi.kind, ActionKind::kill_process);
}

TEST_P(PolicyLint, CallsWithTestsEndInARowWithoutUnlessTheDefaultIsMeant) {
  // The default's ENOSYS is right for calls that are missing as a whole; a refused argument needs
  // an errno of its own.
  for (const Arch arch : kArches) {
    for (const NumberRows& entry : rows_by_number(policy(), arch, {})) {
      EXPECT_TRUE(entry.rows.back()->when.empty())
          << entry.rows.back()->origin << " ends in the default action";
    }
  }
}

TEST_P(PolicyLint, TestsLookAtWhatTheKernelUses) {
  for (const Row& row : policy().rows) {
    for (const ArgTest& test : row.when) {
      for (const std::string& name : row.syscalls) {
        if (is_pointer(name, test.arg)) {
          EXPECT_EQ(test.bits, 64U) << row.origin << ": " << name << " has a pointer there";
          continue;
        }
        EXPECT_TRUE(kernel_uses_low_half(name, test.arg))
            << row.origin << ": add " << name << " to the list above";
        EXPECT_EQ(test.bits, 32U) << row.origin << ": " << name << " takes 32 bits there";
      }
    }
  }
}

TEST_P(PolicyLint, NoNumbersThatTheTableHas) {
  EXPECT_TRUE(policy().numbers.empty());
}

INSTANTIATE_TEST_SUITE_P(Builtin, PolicyLint, testing::Values("default", "strict"),
                         [](const auto& parameter) { return std::string(parameter.param); });

TEST(PolicyLintFiles, NamesStandOnceOrWithTestsBetween) {
  // parse_policy() refuses rows that can never decide; what is left is one final row a call and
  // architecture.
  const auto policy = builtin("default");
  ASSERT_TRUE(policy);
  std::map<std::string, int> final_rows;
  for (const Row& row : (*policy)->rows) {
    if (!row.when.empty() || row.needs_ptrace) continue;
    for (const std::string& name : row.syscalls) ++final_rows[name];
  }
  for (const auto& [name, count] : final_rows) EXPECT_EQ(count, 1) << name;
}

TEST(PolicyLintFiles, StrictPermitsNothingMore) {
  const auto strict = builtin("strict");
  ASSERT_TRUE(strict);
  EXPECT_EQ(weakens(**strict), std::vector<std::string>{});
}

}  // namespace
}  // namespace sandy::seccomp
