// OCI / Docker profiles: what a Docker-like one means in a sandbox, and what is refused.
#include "plan/seccomp/oci_profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/audit.h>

#include <fstream>
#include <sstream>

#include "plan/seccomp/bpf_evaluator.h"
#include "plan/seccomp/seccomp_compile.h"
#include "plan/seccomp/symbols.h"

namespace sandy::seccomp {
namespace {

using testing::HasSubstr;

std::string docker_like() {
  std::ifstream in(SANDY_DOCKER_LIKE);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

class Profile {
 public:
  explicit Profile(const std::string& json) : policy_(parse_policy(json, "p.json")) {
    EXPECT_TRUE(policy_) << policy_.error().text();
  }

  std::string verdict(Arch arch, const char* call, std::array<std::uint64_t, 6> args = {}) const {
    const auto program = compile(*policy_, arch);
    EXPECT_TRUE(program) << program.error().text();
    return verdict_text(
        evaluate(*program, {audit_arch(arch), syscall_number(arch, call).value(), args}).value());
  }

  const Policy& policy() const { return *policy_; }

 private:
  Result<Policy> policy_;
};

TEST(OciProfile, DockerLikeProfileWithoutCapabilities) {
  const Profile profile(docker_like());
  for (const Arch arch : kArches) {
    EXPECT_EQ(profile.verdict(arch, "read"), "allow");
    EXPECT_EQ(profile.verdict(arch, "bpf"), "errno EPERM");
    EXPECT_EQ(profile.verdict(arch, "ptrace"), "allow");
    EXPECT_EQ(profile.verdict(arch, "clone3"), "errno ENOSYS");
    EXPECT_EQ(profile.verdict(arch, "mount"), "errno EPERM");
    EXPECT_EQ(profile.verdict(arch, "unshare"), "errno EPERM");
    EXPECT_EQ(profile.verdict(arch, "socket", {1, 1, 0}), "allow");
    EXPECT_EQ(profile.verdict(arch, "socket", {40, 1, 0}), "errno EPERM");
    EXPECT_EQ(profile.verdict(arch, "personality", {0}), "allow");
    EXPECT_EQ(profile.verdict(arch, "personality", {0xffffffff}), "allow");
    EXPECT_EQ(profile.verdict(arch, "personality", {0x400000}), "errno EPERM");
    EXPECT_EQ(profile.verdict(arch, "clone", {17}), "allow");
    EXPECT_EQ(profile.verdict(arch, "clone", {0x10000000}), "errno EPERM");
  }
  EXPECT_EQ(profile.verdict(Arch::x86_64, "arch_prctl"), "allow");
  EXPECT_EQ(profile.verdict(Arch::x86_64, "sync_file_range"), "errno EPERM");
  EXPECT_EQ(profile.verdict(Arch::aarch64, "sync_file_range"), "allow");
}

TEST(OciProfile, ForeignAbisStayKilled) {
  const Profile profile(docker_like());
  const auto program = compile(profile.policy(), Arch::x86_64);
  ASSERT_TRUE(program);
  EXPECT_EQ(verdict_text(evaluate(*program, {AUDIT_ARCH_I386, 3, {}}).value()), "kill_process");
  EXPECT_EQ(verdict_text(evaluate(*program, {AUDIT_ARCH_X86_64, kX32Bit, {}}).value()),
            "kill_process");
}

TEST(OciProfile, SaysWhatItWeakens) {
  const auto sentences = weakens(Profile(docker_like()).policy());
  EXPECT_THAT(sentences, testing::Contains(HasSubstr("permits ptrace")));
  EXPECT_THAT(sentences, testing::Contains(HasSubstr("permits process_vm_readv")));
  EXPECT_THAT(sentences, testing::Contains(HasSubstr("sockets of family 17")));
  EXPECT_THAT(sentences, testing::Not(testing::Contains(HasSubstr("permits mount"))));
}

TEST(OciProfile, StrictestMatchingRowDecides) {
  const Profile profile(R"({"defaultAction": "SCMP_ACT_ERRNO", "defaultErrnoRet": 38, "syscalls": [
      {"names": ["ioctl"], "action": "SCMP_ACT_ALLOW"},
      {"names": ["ioctl"], "action": "SCMP_ACT_ERRNO",
       "args": [{"index": 1, "value": 4294967295, "valueTwo": 21522, "op": "SCMP_CMP_MASKED_EQ"}]}]})");
  EXPECT_EQ(profile.verdict(Arch::x86_64, "ioctl", {0, 0x5401}), "allow");
  EXPECT_EQ(profile.verdict(Arch::x86_64, "ioctl", {0, 0x5412}), "errno EPERM");
  EXPECT_EQ(profile.verdict(Arch::x86_64, "ioctl", {0, 0x100005412}), "errno EPERM");
}

TEST(OciProfile, ARowThatRepeatsTheDefaultHidesNoOther) {
  const Profile profile(R"({"defaultAction": "SCMP_ACT_ERRNO", "syscalls": [
      {"names": ["clone"], "action": "SCMP_ACT_ERRNO"},
      {"names": ["clone"], "action": "SCMP_ACT_ALLOW", "args": [{"index": 0, "value": 17, "op": "SCMP_CMP_EQ"}]}]})");
  EXPECT_EQ(profile.verdict(Arch::x86_64, "clone", {17}), "allow");
  EXPECT_EQ(profile.verdict(Arch::x86_64, "clone", {18}), "errno EPERM");
}

TEST(OciProfile, WhatAKernelVersionLeavesOpenIsDecidedStrictly) {
  const Profile profile(R"({"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [
      {"names": ["bpf"], "action": "SCMP_ACT_ERRNO", "includes": {"minKernel": "99.0"}},
      {"names": ["mount"], "action": "SCMP_ACT_ERRNO", "excludes": {"minKernel": "99.0"}},
      {"names": ["setns"], "action": "SCMP_ACT_ERRNO", "excludes": {"minKernel": "3.0"}}]})");
  EXPECT_EQ(profile.verdict(Arch::x86_64, "bpf"), "errno EPERM");
  EXPECT_EQ(profile.verdict(Arch::x86_64, "mount"), "errno EPERM");
  EXPECT_EQ(profile.verdict(Arch::x86_64, "setns"), "allow");
  const Profile newer(R"({"defaultAction": "SCMP_ACT_ERRNO", "syscalls": [
      {"names": ["read"], "action": "SCMP_ACT_ALLOW", "includes": {"minKernel": "99.0"}}]})");
  EXPECT_EQ(newer.verdict(Arch::x86_64, "read"), "errno EPERM");
}

TEST(OciProfile, PodmanSpellings) {
  const Profile profile(
      R"({"defaultAction": "SCMP_ACT_ERRNO", "defaultErrnoRet": 38, "defaultErrno": "ENOSYS",
      "architectures": ["SCMP_ARCH_X86_64"], "flags": ["SECCOMP_FILTER_FLAG_LOG"], "syscalls": [
      {"name": "bpf", "action": "SCMP_ACT_ERRNO", "errnoRet": 1, "errno": "EPERM", "args": null, "includes": null},
      {"names": ["read"], "action": "SCMP_ACT_LOG"}, {"names": ["acct"], "action": "SCMP_ACT_KILL"},
      {"names": ["reboot"], "action": "SCMP_ACT_KILL_PROCESS"}, {"names": ["syslog"], "action": "SCMP_ACT_TRAP"}]})");
  EXPECT_EQ(profile.verdict(Arch::x86_64, "bpf"), "errno EPERM");
  EXPECT_EQ(profile.verdict(Arch::x86_64, "mount"), "errno ENOSYS");
  EXPECT_EQ(profile.verdict(Arch::x86_64, "read"), "log");
  EXPECT_EQ(profile.verdict(Arch::x86_64, "acct"), "kill_thread");
  EXPECT_EQ(profile.verdict(Arch::x86_64, "reboot"), "kill_process");
  EXPECT_EQ(profile.verdict(Arch::x86_64, "syslog"), "trap");
}

struct Refusal {
  std::string json, what, why;
};

std::string profile_with(const std::string& row) {
  return R"({"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [)" + row + "]}";
}

class OciRefused : public testing::TestWithParam<Refusal> {};

TEST_P(OciRefused, NamesKeyAndReason) {
  const auto policy = parse_policy(GetParam().json, "p.json");
  ASSERT_FALSE(policy) << GetParam().json;
  EXPECT_EQ(policy.error().what, GetParam().what);
  EXPECT_THAT(policy.error().why, HasSubstr(GetParam().why));
}

INSTANTIATE_TEST_SUITE_P(
    All, OciRefused,
    testing::Values(
        Refusal{R"({"defaultAction": "SCMP_ACT_DENY"})", "p.json.defaultAction", "is no action"},
        Refusal{R"({"defaultAction": 1})", "p.json.defaultAction", "must be a string"},
        Refusal{R"({"defaultAction": "SCMP_ACT_ERRNO", "defaultErrnoRet": 0})",
                "p.json.defaultErrnoRet", "pretend success"},
        Refusal{
            R"({"defaultAction": "SCMP_ACT_ERRNO", "defaultErrnoRet": 1, "defaultErrno": "ENOSYS"})",
            "p.json", "contradict"},
        Refusal{R"({"defaultAction": "SCMP_ACT_NOTIFY"})", "p.json.defaultAction", "supervisor"},
        Refusal{R"({"defaultAction": "SCMP_ACT_ALLOW", "listenerPath": "/x"})",
                "p.json.listenerPath", "unknown key"},
        Refusal{
            R"({"defaultAction": "SCMP_ACT_ALLOW", "flags": ["SECCOMP_FILTER_FLAG_SPEC_ALLOW"]})",
            "p.json.flags", "only"},
        Refusal{profile_with(R"({"names": ["raed"], "action": "SCMP_ACT_ERRNO"})"),
                "p.json.syscalls[0].names", "\"raed\" is no system call"},
        Refusal{profile_with(R"({"action": "SCMP_ACT_ERRNO"})"), "p.json.syscalls[0]",
                "must have \"names\""},
        Refusal{profile_with(R"({"names": ["bpf"], "name": "bpf", "action": "SCMP_ACT_ERRNO"})"),
                "p.json.syscalls[0]", "must have"},
        Refusal{profile_with(R"({"names": ["bpf"], "action": "SCMP_ACT_TRACE"})"),
                "p.json.syscalls[0].action", "supervisor"},
        Refusal{profile_with(R"({"names": ["bpf"], "action": "SCMP_ACT_ERRNO", "errnoRet": 5000})"),
                "p.json.syscalls[0].errnoRet", "from 0 to 4095"},
        Refusal{profile_with(R"({"names": ["bpf"], "action": "SCMP_ACT_ERRNO", "when": []})"),
                "p.json.syscalls[0].when", "unknown key"},
        Refusal{profile_with(
                    R"({"names": ["bpf"], "action": "SCMP_ACT_ERRNO", "includes": {"os": "x"}})"),
                "p.json.syscalls[0].includes.os", "unknown key"},
        Refusal{
            profile_with(
                R"({"names": ["bpf"], "action": "SCMP_ACT_ERRNO", "includes": {"minKernel": "new"}})"),
            "p.json.syscalls[0].includes.minKernel", "no kernel version"},
        Refusal{
            profile_with(
                R"({"names": ["bpf"], "action": "SCMP_ACT_ERRNO", "args": [{"index": 6, "value": 1, "op": "SCMP_CMP_EQ"}]})"),
            "p.json.syscalls[0].args[0].index", "from 0 to 5"},
        Refusal{
            profile_with(
                R"({"names": ["bpf"], "action": "SCMP_ACT_ERRNO", "args": [{"index": 0, "value": 1, "op": "=="}]})"),
            "p.json.syscalls[0].args[0].op", "no operator"},
        Refusal{profile_with(R"({"names": ["bpf"], "action": "SCMP_ACT_ERRNO", "args": [
        {"index": 0, "value": 1, "op": "SCMP_CMP_GE"}, {"index": 0, "value": 5, "op": "SCMP_CMP_LE"}]})"),
                "p.json.syscalls[0].args[1]", "a second time"},
        Refusal{
            profile_with(
                R"({"names": ["bpf"], "action": "SCMP_ACT_ERRNO", "args": [{"index": 0, "value": 1, "valueTwo": 2, "op": "SCMP_CMP_MASKED_EQ"}]})"),
            "p.json.syscalls[0].args[0]", "outside the mask"}));

}  // namespace
}  // namespace sandy::seccomp
