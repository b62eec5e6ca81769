// The reader of Sandy's own policy files: what it refuses, by key and reason, and what the values
// mean.
#include "plan/seccomp/seccomp_policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plan/seccomp/decide.h"
#include "plan/seccomp/symbols.h"

namespace sandy::seccomp {
namespace {

using testing::HasSubstr;

std::string with_rows(const std::string& rows) {
  return R"({"version": 1, "default": {"action": "errno ENOSYS", "reason": "r"}, "rows": [)" +
         rows + "]}";
}

std::string row(const std::string& rest) {
  return with_rows(R"({"syscalls": ["read"], "action": "allow", "reason": "r")" + rest + "}");
}

std::string test_row(const std::string& test) {
  return row(R"(, "when": [)" + test + "]");
}

struct Refusal {
  std::string json, what, why;
};

class Refused : public testing::TestWithParam<Refusal> {};

TEST_P(Refused, NamesKeyAndReason) {
  const auto policy = parse_policy(GetParam().json, "p.json");
  ASSERT_FALSE(policy) << GetParam().json.substr(0, 400);
  EXPECT_EQ(policy.error().what, GetParam().what);
  EXPECT_THAT(policy.error().why, HasSubstr(GetParam().why));
}

std::string repeat(const std::string& text, int count) {
  std::string out;
  for (int i = 0; i < count; ++i) out += text;
  return out;
}

const std::string kDeep = std::string(50000, '[') + std::string(50000, ']');

INSTANTIATE_TEST_SUITE_P(
    Text, Refused,
    testing::Values(Refusal{"", "p.json", "is empty"},
                    Refusal{"{", "p.json: line 1, column 2", "syntax error"},
                    Refusal{"{} x", "p.json: line 1, column 4", "syntax error"},
                    Refusal{"{\"version\": 1 /* c */}", "p.json: line 1, column 15", "syntax error"},
                    Refusal{"{\"a\": \"\xff\"}", "p.json: line 1, column 8", "syntax error"},
                    Refusal{"[]", "p.json", "must be a JSON object"},
                    Refusal{"{}", "p.json", "neither a Sandy policy"},
                    Refusal{R"({"version": 1, "defaultAction": "SCMP_ACT_ALLOW"})", "p.json",
                            "its kind is not clear"},
                    Refusal{R"({"version": 1, "version": 1})", "p.json.version", "twice"},
                    Refusal{R"({"version": 1, "rows": [{"action": "allow", "action": "log"}]})",
                            "p.json.rows[0].action", "twice"},
                    Refusal{kDeep, "p.json" + repeat("[0]", 12), "nested deeper than 12 levels"},
                    Refusal{"{\"a\": " + kDeep + "}", "p.json.a" + repeat("[0]", 11), "nested deeper than 12 levels"},
                    Refusal{std::string((1 << 20) + 1, ' '), "p.json", "larger than 1048576 bytes"},
                    Refusal{"[" + std::string(200000, ' ') +
                                [] {
                                  std::string s;
                                  for (int i = 0; i < 100001; ++i) s += "1,";
                                  return s + "1]";
                                }(),
                            "p.json[99999]", "more than 100000 values"}));

INSTANTIATE_TEST_SUITE_P(
    Top, Refused,
    testing::Values(
        Refusal{R"({"version": 2})", "p.json.version", "must be 1"},
        Refusal{R"({"version": "1"})", "p.json.version", "must be a whole number"},
        Refusal{R"({"version": 1.5})", "p.json.version", "must be a whole number"},
        Refusal{R"({"version": 1, "colour": 1})", "p.json.colour", "unknown key"},
        Refusal{R"({"version": 1, "rows": []})", "p.json.default", "is missing"},
        Refusal{R"({"version": 1, "default": "allow", "rows": []})", "p.json.default",
                "must be an object"},
        Refusal{R"({"version": 1, "default": {"action": "allow"}, "rows": []})",
                "p.json.default.reason", "is missing"},
        Refusal{R"({"version": 1, "default": {"action": "deny", "reason": "r"}, "rows": []})",
                "p.json.default.action", "is no action"},
        Refusal{
            R"({"version": 1, "default": {"action": "allow", "reason": "r", "x": 1}, "rows": []})",
            "p.json.default.x", "unknown key"},
        Refusal{R"({"version": 1, "extends": "mine", "rows": []})", "p.json.extends",
                "no such built-in"},
        Refusal{R"({"version": 1, "extends": "../x", "rows": []})", "p.json.extends",
                "no such built-in"},
        Refusal{R"({"version": 1, "extends": "default"})", "p.json.rows", "is missing"},
        Refusal{R"({"version": 1, "extends": "default", "rows": {}})", "p.json.rows",
                "must be an array"},
        Refusal{
            R"({"version": 1, "extends": "default", "foreign_abi": {"action": "allow", "reason": "r"}, "rows": []})",
            "p.json.foreign_abi.action", "would let i386"},
        Refusal{
            R"({"version": 1, "extends": "default", "foreign_abi": {"action": "log", "reason": "r"}, "rows": []})",
            "p.json.foreign_abi.action", "would let i386"},
        Refusal{
            R"({"version": 1, "extends": "default", "numbers": {"read": {"x86_64": 5}}, "rows": []})",
            "p.json.numbers.read.x86_64", "is 0"},
        Refusal{
            R"({"version": 1, "extends": "default", "numbers": {"new": {"x86_64": 4096}}, "rows": []})",
            "p.json.numbers.new.x86_64", "from 0 to 4095"},
        Refusal{
            R"({"version": 1, "extends": "default", "numbers": {"new": {"mips": 1}}, "rows": []})",
            "p.json.numbers.new.mips", "unknown key"},
        Refusal{R"({"version": 1, "extends": "default", "numbers": {"new": {}}, "rows": []})",
                "p.json.numbers.new", "gives no number"}));

INSTANTIATE_TEST_SUITE_P(
    Rows, Refused,
    testing::Values(
        Refusal{with_rows("1"), "p.json.rows[0]", "must be an object"},
        Refusal{with_rows(R"({"syscalls": [], "action": "allow", "reason": "r"})"),
                "p.json.rows[0].syscalls", "is empty"},
        Refusal{with_rows(R"({"syscalls": "read", "action": "allow", "reason": "r"})"),
                "p.json.rows[0].syscalls", "must be an array"},
        Refusal{with_rows(R"({"syscalls": ["raed"], "action": "allow", "reason": "r"})"),
                "p.json.rows[0].syscalls[0]", "\"raed\" is no system call"},
        Refusal{with_rows(R"({"syscalls": ["read\u0000x"], "action": "allow", "reason": "r"})"),
                "p.json.rows[0].syscalls[0]", "a NUL character"},
        Refusal{with_rows(R"({"syscalls": [7], "action": "allow", "reason": "r"})"),
                "p.json.rows[0].syscalls[0]", "must be a string"},
        Refusal{with_rows(R"({"syscalls": ["read", "read"], "action": "allow", "reason": "r"})"),
                "p.json.rows[0].syscalls[1]", "stands twice"},
        Refusal{with_rows(R"({"syscalls": ["read"], "reason": "r"})"), "p.json.rows[0].action",
                "is missing"},
        Refusal{with_rows(R"({"syscalls": ["read"], "action": "allow"})"), "p.json.rows[0].reason",
                "is missing"},
        Refusal{with_rows(R"({"syscalls": ["read"], "action": "allow", "reason": ""})"),
                "p.json.rows[0].reason", "is empty"},
        Refusal{with_rows(R"({"syscalls": ["read"], "action": "errno", "reason": "r"})"),
                "p.json.rows[0].action", "no action"},
        Refusal{with_rows(R"({"syscalls": ["read"], "action": "errno 0", "reason": "r"})"),
                "p.json.rows[0].action", "no errno"},
        Refusal{with_rows(R"({"syscalls": ["read"], "action": "errno EFOO", "reason": "r"})"),
                "p.json.rows[0].action", "\"EFOO\" is no errno"},
        Refusal{with_rows(R"({"syscalls": ["read"], "action": "notify", "reason": "r"})"),
                "p.json.rows[0].action", "no action"},
        Refusal{row(R"(, "switch": "gdb")"), "p.json.rows[0].switch", "is no switch"},
        Refusal{row(R"(, "arches": ["mips"])"), "p.json.rows[0].arches", "must list"},
        Refusal{row(R"(, "arches": [])"), "p.json.rows[0].arches", "is empty"},
        Refusal{row(R"(, "when": [])"), "p.json.rows[0].when", "is empty"},
        Refusal{row(R"(, "note": "")"), "p.json.rows[0].note", "unknown key"},
        Refusal{with_rows(R"({"syscalls": ["read"], "action": "allow", "reason": "r"},
                         {"syscalls": ["read"], "action": "errno EPERM", "reason": "r"})"),
                "p.json.rows[1]", "can never decide read: p.json.rows[0] always does"},
        Refusal{with_rows(R"({"syscalls": ["read"], "action": "allow", "reason": "r"},
                         {"syscalls": ["write", "read"], "action": "allow", "switch": "ptrace", "reason": "r"})"),
                "p.json.rows[1]", "can never decide read"}));

INSTANTIATE_TEST_SUITE_P(
    Tests, Refused,
    testing::Values(
        Refusal{test_row(R"({"arg": 6, "op": "equal", "bits": 64, "value": "0"})"),
                "p.json.rows[0].when[0].arg", "from 0 to 5"},
        Refusal{test_row(R"({"arg": -1, "op": "equal", "bits": 64, "value": "0"})"),
                "p.json.rows[0].when[0].arg", "from 0 to 5"},
        Refusal{test_row(R"({"op": "equal", "bits": 64, "value": "0"})"),
                "p.json.rows[0].when[0].arg", "is missing"},
        Refusal{test_row(R"({"arg": 0, "op": "==", "bits": 64, "value": "0"})"),
                "p.json.rows[0].when[0].op", "is no operator"},
        Refusal{test_row(R"({"arg": 0, "op": "equal", "value": "0"})"),
                "p.json.rows[0].when[0].bits", "is missing"},
        Refusal{test_row(R"({"arg": 0, "op": "equal", "bits": 16, "value": "0"})"),
                "p.json.rows[0].when[0].bits", "32 or 64"},
        Refusal{test_row(R"({"arg": 0, "op": "equal", "bits": 64})"), "p.json.rows[0].when[0]",
                "either"},
        Refusal{test_row(R"({"arg": 0, "op": "equal", "bits": 64, "value": "0", "values": ["0"]})"),
                "p.json.rows[0].when[0]", "either"},
        Refusal{test_row(R"({"arg": 0, "op": "equal", "bits": 64, "values": []})"),
                "p.json.rows[0].when[0]", "no value"},
        Refusal{test_row(R"({"arg": 0, "op": "less", "bits": 64, "values": ["1", "2"]})"),
                "p.json.rows[0].when[0]", "one value"},
        Refusal{test_row(R"({"arg": 0, "op": "equal", "bits": 64, "value": 0})"),
                "p.json.rows[0].when[0].value", "must be a string"},
        Refusal{test_row(R"({"arg": 0, "op": "equal", "bits": 64, "value": "TIOCFOO"})"),
                "p.json.rows[0].when[0].value", "neither a known constant"},
        Refusal{test_row(R"({"arg": 0, "op": "equal", "bits": 64, "value": "010"})"),
                "p.json.rows[0].when[0].value", "neither"},
        Refusal{test_row(R"({"arg": 0, "op": "equal", "bits": 64, "value": "0x1|"})"),
                "p.json.rows[0].when[0].value", "neither"},
        Refusal{
            test_row(R"({"arg": 0, "op": "equal", "bits": 64, "value": "0x10000000000000000"})"),
            "p.json.rows[0].when[0].value", "neither"},
        Refusal{test_row(R"({"arg": 0, "op": "equal", "bits": 32, "value": "0x100000000"})"),
                "p.json.rows[0].when[0]", "does not fit 32 bits"},
        Refusal{test_row(R"({"arg": 0, "op": "masked_equal", "bits": 64, "value": "0"})"),
                "p.json.rows[0].when[0].mask", "missing"},
        Refusal{test_row(R"({"arg": 0, "op": "equal", "bits": 64, "mask": "1", "value": "0"})"),
                "p.json.rows[0].when[0].mask", "only masked_equal"},
        Refusal{
            test_row(R"({"arg": 0, "op": "masked_equal", "bits": 64, "mask": "1", "value": "2"})"),
            "p.json.rows[0].when[0]", "outside the mask"},
        Refusal{
            test_row(
                R"({"arg": 0, "op": "masked_equal", "bits": 32, "mask": "0x1ffffffff", "value": "0"})"),
            "p.json.rows[0].when[0]", "mask does not fit"}));

TEST(SeccompPolicy, ExtendsPutsOwnRowsFirst) {
  const auto policy = parse_policy(R"({"version": 1, "extends": "default", "rows": [
      {"syscalls": ["read"], "action": "errno EIO", "reason": "test"}]})",
                                   "p.json");
  ASSERT_TRUE(policy) << policy.error().text();
  const Call call{audit_arch(Arch::x86_64), 0, {}};
  EXPECT_EQ(decide(*policy, Arch::x86_64, {}, call).text(), "errno EIO");
  const Call other{audit_arch(Arch::x86_64), 1, {}};
  EXPECT_EQ(decide(*policy, Arch::x86_64, {}, other).text(), "allow");
}

TEST(SeccompPolicy, OwnNumbersNameNewerCalls) {
  const auto policy = parse_policy(R"({"version": 1, "extends": "default",
      "numbers": {"brand_new": {"x86_64": 600, "aarch64": 601}, "only_here": {"x86_64": 602}},
      "rows": [{"syscalls": ["brand_new", "only_here"], "action": "allow", "reason": "test"}]})",
                                   "p.json");
  ASSERT_TRUE(policy) << policy.error().text();
  const auto verdict = [&](Arch arch, std::uint32_t number) {
    return decide(*policy, arch, {}, {audit_arch(arch), number, {}}).text();
  };
  EXPECT_EQ(verdict(Arch::x86_64, 600), "allow");
  EXPECT_EQ(verdict(Arch::aarch64, 601), "allow");
  EXPECT_EQ(verdict(Arch::x86_64, 602), "allow");
  EXPECT_EQ(verdict(Arch::aarch64, 602), "errno ENOSYS");
  EXPECT_THAT(weakens(*policy), testing::ElementsAre("permits brand_new", "permits only_here"));
}

TEST(SeccompPolicy, SymbolsAreWhatTheKernelHas) {
  EXPECT_EQ(parse_value("TIOCSTI"), 0x5412U);
  EXPECT_EQ(parse_value("CLONE_NEWUSER|17"), 0x10000011U);
  EXPECT_EQ(parse_value("0xffffffffffffffff"), ~std::uint64_t{0});
  EXPECT_EQ(parse_value("18446744073709551615"), ~std::uint64_t{0});
  EXPECT_EQ(errno_from_name("EAFNOSUPPORT"), 97);
  EXPECT_EQ(errno_from_name("EPERM\0"), 1);
  EXPECT_EQ(errno_from_name(std::string_view("EPERM\0", 6)), std::nullopt);
}

TEST(SyscallTable, KnowsWhatTheLibraryMayNot) {
  EXPECT_EQ(syscall_number(Arch::x86_64, "fchmodat2"), 452U);
  EXPECT_EQ(syscall_number(Arch::aarch64, "mseal"), 462U);
  EXPECT_EQ(syscall_number(Arch::aarch64, "uretprobe"), std::nullopt);
  EXPECT_EQ(syscall_number(Arch::aarch64, "open"), std::nullopt);
  EXPECT_TRUE(syscall_known("socketcall"));
  EXPECT_FALSE(syscall_known("nosuch"));
}

TEST(Describe, IsStableAndLeavesOutWhatNeverDecides) {
  const auto policy =
      parse_policy(R"({"version": 1, "default": {"action": "errno ENOSYS", "reason": "d"}, "rows": [
      {"syscalls": ["read", "open"], "action": "allow", "reason": "files"},
      {"syscalls": ["ptrace"], "action": "allow", "switch": "ptrace", "reason": "debug"},
      {"syscalls": ["socket"], "action": "errno EPERM", "reason": "raw", "when": [
        {"arg": 0, "op": "equal", "bits": 32, "values": ["AF_INET", "AF_INET6"]},
        {"arg": 1, "op": "masked_equal", "bits": 32, "mask": "SOCK_TYPE_MASK", "value": "SOCK_RAW"}]}]})",
                   "p.json");
  ASSERT_TRUE(policy) << policy.error().text();
  EXPECT_THAT(describe(*policy, Arch::aarch64),
              testing::ElementsAre(
                  "allow               read  # files",
                  "errno EPERM         socket when low32(arg0) == any of {AF_INET, AF_INET6} and "
                  "low32(arg1) & SOCK_TYPE_MASK == SOCK_RAW  # raw",
                  "errno ENOSYS        every other call  # d",
                  "kill_process        every 32-bit ARM call"));
  EXPECT_EQ(describe(*policy, Arch::x86_64, {.allow_ptrace = true}).at(1),
            "allow               ptrace  # debug");
  const auto strict = builtin("strict");
  ASSERT_TRUE(strict);
  for (const std::string& line : describe(**strict, Arch::x86_64)) {
    EXPECT_FALSE(line.starts_with("allow") && line.contains("personality")) << line;
  }
}

TEST(Weakens, SaysWhatAFilePermits) {
  const auto sentences = [](const std::string& rows) {
    const auto policy =
        parse_policy(R"({"version": 1, "extends": "default", "rows": [)" + rows + "]}", "p.json");
    EXPECT_TRUE(policy) << policy.error().text();
    return weakens(*policy);
  };
  EXPECT_THAT(sentences(""), testing::IsEmpty());
  EXPECT_THAT(sentences(R"({"syscalls": ["read"], "action": "kill_process", "reason": "r"})"),
              testing::IsEmpty());
  EXPECT_THAT(sentences(R"({"syscalls": ["bpf"], "action": "allow", "reason": "r"})"),
              testing::ElementsAre(HasSubstr("permits bpf (refused by default: loads programs")));
  EXPECT_THAT(sentences(R"({"syscalls": ["bpf"], "action": "log", "reason": "r",
      "when": [{"arg": 0, "op": "equal", "bits": 32, "value": "5"}]})"),
              testing::ElementsAre(HasSubstr("permits bpf")));
  EXPECT_THAT(sentences(R"({"syscalls": ["ioctl"], "action": "allow", "reason": "r"})"),
              testing::Contains(HasSubstr("TIOCSTI")));
  EXPECT_THAT(sentences(R"({"syscalls": ["ioctl"], "action": "allow", "reason": "r",
      "when": [{"arg": 1, "op": "not_equal", "bits": 64, "values": ["TIOCSTI", "TIOCLINUX"]}]})"),
              testing::Contains(HasSubstr("TIOCSTI with high bits set")));
  EXPECT_THAT(sentences(R"({"syscalls": ["socket"], "action": "allow", "reason": "r",
      "when": [{"arg": 0, "op": "equal", "bits": 32, "value": "AF_VSOCK"}]})"),
              testing::Contains(HasSubstr("family 40")));
  EXPECT_THAT(sentences(R"({"syscalls": ["clone"], "action": "allow", "reason": "r"})"),
              testing::Contains(HasSubstr("CLONE_NEWUSER")));
}

TEST(Weakens, ADefaultThatPermitsIsNamedWithAllThatItOpens) {
  const auto policy = parse_policy(
      with_rows("").replace(with_rows("").find("errno ENOSYS"), 12, "allow"), "p.json");
  ASSERT_TRUE(policy) << policy.error().text();
  const auto sentences = weakens(*policy);
  EXPECT_THAT(sentences, testing::Contains(HasSubstr("the default action is allow")));
  for (const char* call : {"permits mount", "permits bpf", "permits ptrace",
                           "permits io_uring_setup", "permits clone3"}) {
    EXPECT_THAT(sentences, testing::Contains(HasSubstr(call)));
  }
}

}  // namespace
}  // namespace sandy::seccomp
