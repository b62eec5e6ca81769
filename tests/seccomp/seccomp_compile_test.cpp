// Compiled programs against the policy's own meaning, against libseccomp, and at the kernel's
// limits.
#include "plan/seccomp/seccomp_compile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <seccomp.h>
#include <sys/mman.h>

#include <cstring>
#include <random>

#include "base/unique_fd.h"
#include "plan/seccomp/bpf_builder.h"
#include "plan/seccomp/bpf_evaluator.h"

namespace sandy::seccomp {
namespace {

class Random {
 public:
  explicit Random(unsigned seed) : engine_(seed) {}
  std::uint64_t below(std::uint64_t bound) { return engine_() % bound; }
  bool coin() { return below(2) == 0; }

  // Values near each other and near the edges of the halves, so that comparisons of both kinds come
  // out.
  std::uint64_t value() {
    static constexpr std::uint64_t kEdges[] = {
        0,          1,          2,          16,          17,          40,          0x5412,
        0x7fffffff, 0x80000000, 0xffffffff, 0x100000000, 0x100000001, 0x100005412, 0x10000000011,
        ~0ULL};
    return kEdges[below(std::size(kEdges))] + below(3) - 1;
  }

 private:
  std::mt19937_64 engine_;
};

Action random_action(Random& random) {
  static const Action kActions[] = {{ActionKind::allow},         {ActionKind::log},
                                    {ActionKind::errno_, EPERM}, {ActionKind::errno_, ENOSYS},
                                    {ActionKind::trap},          {ActionKind::kill_thread},
                                    {ActionKind::kill_process}};
  return kActions[random.below(std::size(kActions))];
}

ArgTest random_test(Random& random) {
  ArgTest test;
  test.arg = static_cast<unsigned>(random.below(6));
  test.op = static_cast<Op>(random.below(8));
  test.bits = random.coin() ? 32 : 64;
  const std::uint64_t width = test.bits == 32 ? 0xffffffff : ~0ULL;
  const bool masked = test.op == Op::masked_equal || test.op == Op::masked_not_equal;
  if (masked) test.mask.number = (random.coin() ? random.value() : 0xffffffff) & width;
  const bool several = masked || test.op == Op::equal || test.op == Op::not_equal;
  for (std::uint64_t i = 0; i <= (several ? random.below(4) : 0); ++i) {
    test.values.push_back({random.value() & width & test.mask.number, ""});
  }
  return test;
}

Policy random_policy(Random& random, std::size_t rows) {
  static const char* const kCalls[] = {"read",  "write",     "close",  "mmap",  "ioctl",  "socket",
                                       "clone", "fchmodat2", "openat", "mseal", "getpid", "clone3"};
  Policy policy;
  policy.name = "random";
  policy.default_action = random_action(random);
  policy.foreign_abi = {ActionKind::errno_, EXDEV};
  for (std::size_t i = 0; i < rows; ++i) {
    Row row;
    for (std::uint64_t n = 0; n <= random.below(3); ++n)
      row.syscalls.push_back(kCalls[random.below(std::size(kCalls))]);
    row.action = random_action(random);
    for (std::uint64_t n = random.below(4); n > 0; --n) row.when.push_back(random_test(random));
    row.needs_ptrace = random.below(5) == 0;
    row.arches = {random.below(5) != 0, random.below(5) != 0};
    policy.rows.push_back(row);
  }
  return policy;
}

Call random_call(Random& random, Arch arch) {
  Call call{audit_arch(arch), static_cast<std::uint32_t>(random.below(480)), {}};
  if (random.below(20) == 0) call.audit_arch = static_cast<std::uint32_t>(random.value());
  if (random.below(20) == 0) call.number |= static_cast<std::uint32_t>(random.value());
  for (auto& arg : call.args) arg = random.value();
  return call;
}

void expect_same(const Policy& policy, Arch arch, const CompileOptions& options,
                 std::span<const sock_filter> program, const Call& call) {
  const auto verdict = evaluate(program, call);
  ASSERT_TRUE(verdict) << verdict.error().text();
  EXPECT_EQ(verdict_text(*verdict), decide(policy, arch, options, call).text())
      << arch_name(arch) << " call " << call.number << " of " << std::hex << call.audit_arch;
}

TEST(Compile, RandomPoliciesMeanWhatTheirRowsSay) {
  Random random(1);
  for (int round = 0; round < 150; ++round) {
    const Policy policy = random_policy(random, random.below(round % 10 == 0 ? 120 : 25));
    for (const Arch arch : kArches) {
      const CompileOptions options{.allow_ptrace = random.coin()};
      const auto program = compile(policy, arch, options);
      ASSERT_TRUE(program) << program.error().text();
      ASSERT_TRUE(check_program(*program));
      for (int i = 0; i < 150; ++i) {
        Call call = random_call(random, arch);
        if (random.coin() && !policy.rows.empty()) {  // most numbers have no row
          const Row& row = policy.rows[random.below(policy.rows.size())];
          if (const auto number = policy.number(arch, row.syscalls.front())) call.number = *number;
        }
        expect_same(policy, arch, options, *program, call);
      }
    }
    if (HasFailure()) return;
  }
}

TEST(Compile, BuiltinProgramsAreWhatTheRunTimeCompilerGives) {
  Random random(2);
  for (const char* name : {"default", "strict", "proxy"}) {
    const auto policy = builtin(name);
    ASSERT_TRUE(policy) << policy.error().text();
    for (const Arch arch : kArches) {
      for (const bool ptrace : {false, true}) {
        const CompileOptions options{.allow_ptrace = ptrace};
        const auto compiled = compile(**policy, arch, options),
                   embedded = builtin_program(name, arch, options);
        ASSERT_TRUE(compiled && embedded);
        EXPECT_EQ(as_bytes(*compiled), as_bytes(*embedded));
        for (int i = 0; i < 1000; ++i)
          expect_same(**policy, arch, options, *embedded, random_call(random, arch));
      }
    }
  }
  EXPECT_FALSE(builtin_program("none", Arch::x86_64));
}

// Numbers that end in a return without a load of arguments are cached by Linux 5.11 and later, and
// cost nothing.
TEST(Compile, PlainCallsAreDecidedInAFewComparisons) {
  for (const Arch arch : kArches) {
    const auto program = builtin_program("default", arch);
    ASSERT_TRUE(program);
    std::size_t at = 0, steps = 0;
    const std::uint32_t number = syscall_number(arch, "getppid").value();
    std::uint32_t a = 0;
    for (; BPF_CLASS((*program)[at].code) != BPF_RET; ++at, ++steps) {
      const sock_filter& insn = (*program)[at];
      if (BPF_CLASS(insn.code) == BPF_LD) {
        ASSERT_LT(insn.k, 8U) << "loads an argument";
        a = insn.k == 0 ? number : audit_arch(arch);
      } else if (BPF_OP(insn.code) == BPF_JA) {
        at += insn.k;
      } else {
        at += (BPF_OP(insn.code) == BPF_JEQ ? a == insn.k : a >= insn.k) ? insn.jt : insn.jf;
      }
    }
    EXPECT_LE(steps, 12U);
    EXPECT_LE(program->size(), 400U);
  }
}

TEST(Compile, RefusesWhatTheKernelWouldNotTake) {
  Policy policy;
  policy.name = "huge";
  policy.default_action = {ActionKind::errno_, ENOSYS};
  for (std::uint64_t i = 0; i < 3000; ++i) {
    Row row;
    row.syscalls = {"ioctl"};
    row.action = {ActionKind::allow};
    row.when = {{1, Op::equal, 64, {~0ULL, ""}, {{i, ""}}}};
    policy.rows.push_back(row);
  }
  const auto program = compile(policy, Arch::x86_64);
  ASSERT_FALSE(program);
  EXPECT_THAT(program.error().why, testing::HasSubstr("more than 4096 instructions"));

  policy.rows.resize(
      1000);  // 4 instructions each at most: just under the limit, with jumps far beyond 255
  const auto large = compile(policy, Arch::x86_64);
  ASSERT_TRUE(large) << large.error().text();
  ASSERT_TRUE(check_program(*large));
  const std::uint32_t number = syscall_number(Arch::x86_64, "ioctl").value();
  for (const std::uint64_t value : {0ULL, 500ULL, 999ULL, 1000ULL, 0x100000001ULL}) {
    expect_same(policy, Arch::x86_64, {}, *large, {audit_arch(Arch::x86_64), number, {0, value}});
  }
}

TEST(Compile, RefusesTestsThatNoParserMade) {
  Policy policy;
  Row row;
  row.syscalls = {"ioctl"};
  row.when = {{1, Op::equal, 64, {~0ULL, ""}, {}}};
  policy.rows = {row};
  EXPECT_FALSE(compile(policy, Arch::x86_64));
  policy.rows[0].when = {{9, Op::equal, 64, {~0ULL, ""}, {{0, ""}}}};
  EXPECT_FALSE(compile(policy, Arch::x86_64));
}

// libseccomp's program for the same policy, where both can say it: no call with more than one row.
Result<Program> by_libseccomp(const Policy& policy) {
  const scmp_filter_ctx context = seccomp_init(policy.default_action.bpf_return());
  if (context == nullptr) return fail("seccomp_init", "failed");
  struct Release {
    scmp_filter_ctx context;
    ~Release() { seccomp_release(context); }
  } release{context};
  if (seccomp_attr_set(context, SCMP_FLTATR_ACT_BADARCH, policy.foreign_abi.bpf_return()) != 0) {
    return fail("SCMP_FLTATR_ACT_BADARCH", "failed");
  }
  if (seccomp_attr_set(context, SCMP_FLTATR_CTL_OPTIMIZE, 2) != 0)
    return fail("SCMP_FLTATR_CTL_OPTIMIZE", "failed");
  for (const Row& row : policy.rows) {
    if (row.action == policy.default_action) continue;  // EACCES otherwise
    std::vector<scmp_arg_cmp> tests;
    for (const ArgTest& test : row.when) {
      static constexpr scmp_compare kOps[] = {SCMP_CMP_EQ,       SCMP_CMP_NE, SCMP_CMP_LT,
                                              SCMP_CMP_LE,       SCMP_CMP_GT, SCMP_CMP_GE,
                                              SCMP_CMP_MASKED_EQ};
      const bool masked = test.op == Op::masked_equal;
      tests.push_back({test.arg, kOps[static_cast<std::size_t>(test.op)],
                       masked ? test.mask.number : test.values[0].number,
                       masked ? test.values[0].number : 0});
    }
    const int number = static_cast<int>(syscall_number(native_arch(), row.syscalls[0]).value());
    const int added = seccomp_rule_add_array(context, row.action.bpf_return(), number,
                                             static_cast<unsigned>(tests.size()), tests.data());
    if (added != 0) return fail("seccomp_rule_add_array", errno_text(-added));
  }
  const UniqueFd file(memfd_create("filter", MFD_CLOEXEC));
  if (!file || seccomp_export_bpf(context, file.get()) != 0)
    return fail("seccomp_export_bpf", "failed");
  const off_t size = lseek(file.get(), 0, SEEK_END);
  Program program(static_cast<std::size_t>(size) / sizeof(sock_filter));
  if (pread(file.get(), program.data(), static_cast<std::size_t>(size), 0) != size)
    return fail("pread", "failed");
  return program;
}

TEST(Compile, AgreesWithLibseccomp) {
  Random random(3);
  static const char* const kCalls[] = {"read",   "ioctl",  "socket",     "clone",
                                       "openat", "getpid", "personality"};
  for (int round = 0; round < 100; ++round) {
    Policy policy;
    policy.default_action = {ActionKind::errno_, ENOSYS};
    policy.foreign_abi = {ActionKind::kill_process};
    for (const char* call : kCalls) {
      Row row;
      row.syscalls = {call};
      row.action = random_action(random);
      for (unsigned arg = 0; arg < 6;
           ++arg) {  // each argument once, all 64 bits: what libseccomp can say
        if (random.below(3) != 0) continue;
        ArgTest test;
        test.arg = arg;
        test.op = static_cast<Op>(random.below(7));
        if (test.op == Op::masked_equal) test.mask.number = random.value();
        test.values = {{random.value() & test.mask.number, ""}};
        row.when.push_back(test);
      }
      policy.rows.push_back(row);
    }
    const auto ours = compile(policy, native_arch()), theirs = by_libseccomp(policy);
    ASSERT_TRUE(ours) << ours.error().text();
    ASSERT_TRUE(theirs) << theirs.error().text();
    for (int i = 0; i < 300; ++i) {
      Call call = random_call(random, native_arch());
      call.number = syscall_number(native_arch(), kCalls[random.below(std::size(kCalls))]).value();
      for (const ArgTest& test : policy.rows[random.below(policy.rows.size())].when) {
        if (random.coin()) call.args[test.arg] = test.values[0].number;
      }
      EXPECT_EQ(verdict_text(evaluate(*ours, call).value()),
                verdict_text(evaluate(*theirs, call).value()));
    }
    if (HasFailure()) return;
  }
}

// Why the compiler is our own: libseccomp takes both rows without an error, and the refusal is
// gone.
TEST(Compile, LibseccompLosesARefusalBesideAPermission) {
  Policy policy;
  policy.default_action = {ActionKind::errno_, ENOSYS};
  Row permit, refuse;
  permit.syscalls = refuse.syscalls = {"ioctl"};
  permit.action = {ActionKind::allow};
  refuse.action = {ActionKind::errno_, EPERM};
  refuse.when = {{1, Op::masked_equal, 64, {0xffffffff, ""}, {{0x5412, ""}}}};
  policy.rows = {refuse, permit};
  const Call call{
      audit_arch(native_arch()), syscall_number(native_arch(), "ioctl").value(), {0, 0x5412}};
  const auto ours = compile(policy, native_arch()), theirs = by_libseccomp(policy);
  ASSERT_TRUE(ours && theirs);
  EXPECT_EQ(verdict_text(evaluate(*ours, call).value()), "errno EPERM");
  EXPECT_EQ(verdict_text(evaluate(*theirs, call).value()), "allow");
}

TEST(BpfBuilder, FarTargetsGetTrampolines) {
  BpfBuilder builder;
  const auto far = builder.ret(7), other = builder.ret(9);
  auto next = builder.ret(1);
  for (std::uint32_t i = 0; i < 900; ++i)
    next = builder.jump(BPF_JEQ, 1000 + i, i % 2 == 0 ? far : other, next);
  const auto program = builder.program(builder.load(0, next));
  ASSERT_TRUE(check_program(program));
  EXPECT_EQ(evaluate(program, {0, 1000, {}}), 7U);
  EXPECT_EQ(evaluate(program, {0, 1001, {}}), 9U);
  EXPECT_EQ(evaluate(program, {0, 1899, {}}), 9U);
  EXPECT_EQ(evaluate(program, {0, 1900, {}}), 1U);
}

}  // namespace
}  // namespace sandy::seccomp
