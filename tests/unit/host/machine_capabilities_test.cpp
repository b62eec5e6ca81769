#include "host/machine_capabilities.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace sandy::host {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// B119: a kernel older than 5.10.
TEST(KernelRelease, HintsBelow5_10) {
  for (const char* old : {"5.9.16", "5.4.0-150-generic", "4.18.0-553.el8.x86_64", "2.6.78"}) {
    const auto found = kernel_release(old);
    EXPECT_EQ(found.state, CapabilityState::limited) << old;
    EXPECT_THAT(found.detail, AllOf(HasSubstr(old), HasSubstr("5.10"))) << old;
    EXPECT_THAT(found.fix, HasSubstr("5.10")) << old;
  }
  for (const char* now : {"5.10.0-28-amd64", "5.15.167.4-microsoft-standard-WSL2", "6.1.0", "10.0.1"}) {
    EXPECT_EQ(kernel_release(now).state, CapabilityState::ok) << now;
  }
  EXPECT_EQ(kernel_release("unknown").state, CapabilityState::limited);
  EXPECT_FALSE(kernel_release("").fix.empty());
}

TEST(LostPath, NamesEntriesAndQuotesThem) {
  EXPECT_EQ(lost_path({}).state, CapabilityState::ok);
  const auto found = lost_path({"/home/u/bin", "/opt/it's"});
  EXPECT_EQ(found.state, CapabilityState::limited);
  EXPECT_THAT(found.detail, HasSubstr("/home/u/bin, /opt/it's"));
  EXPECT_THAT(found.fix, HasSubstr("--read '/home/u/bin' --read '/opt/it'\\''s'"));
}

TEST(LostPath, ShowsAllOfAVirtualEnvironment) {
  std::string venv = ::testing::TempDir() + "lost_path_XXXXXX";
  ASSERT_NE(::mkdtemp(venv.data()), nullptr);
  EXPECT_THAT(lost_path({venv + "/bin"}).fix, HasSubstr("--read '" + venv + "/bin'"));
  std::ofstream(venv + "/pyvenv.cfg") << "home = /usr/bin\n";
  EXPECT_THAT(lost_path({venv + "/bin"}).fix, HasSubstr("--read '" + venv + "'"));
  std::filesystem::remove_all(venv);
}

TEST(Wsl, SaysWhatIsTrueOfThisOne) {
  EXPECT_EQ(wsl({}).state, CapabilityState::ok);
  const auto first = wsl({.generation = 1});
  EXPECT_EQ(first.state, CapabilityState::missing);
  EXPECT_THAT(first.fix, HasSubstr("wsl --set-version"));
  EXPECT_EQ(wsl({.generation = 2}).state, CapabilityState::ok);
  const auto interop = wsl({.generation = 2, .interop = true});
  EXPECT_EQ(interop.state, CapabilityState::limited);
  EXPECT_THAT(interop.detail, AllOf(HasSubstr("Windows programs"), HasSubstr("AF_VSOCK"), Not(HasSubstr("systemd"))));
  EXPECT_THAT(interop.fix, HasSubstr("enabled=false"));
  EXPECT_THAT(wsl({.generation = 2, .systemd = false}).fix, HasSubstr("systemd=true"));
  const auto drive = wsl({.generation = 2, .interop = true, .systemd = false, .on_windows_drive = true});
  EXPECT_THAT(drive.detail, AllOf(HasSubstr("Windows programs"), HasSubstr("systemd"), HasSubstr("Windows drive")));
}

TEST(CgroupLimits, NamesWhatThereIsAndWhatIsLacking) {
  plan::CgroupFacts facts;
  facts.why = "no bus";
  facts.fix = "start one";
  auto found = cgroup_limits(facts, false, {"limits.memory", "limits.pids"});
  EXPECT_EQ(found.state, CapabilityState::missing);
  EXPECT_EQ(found.detail, "no bus; not enforced by control groups here: limits.memory (watched by the agent), limits.pids (at most by RLIMIT_NPROC)");
  EXPECT_THAT(found.fix, AllOf(HasSubstr("start one"), HasSubstr("best_effort")));
  facts = {};
  facts.way = plan::CgroupFacts::Way::systemd;
  facts.memory = facts.swap = facts.cpus = facts.pids = facts.io = true;
  found = cgroup_limits(facts, false, {});
  EXPECT_EQ(found.state, CapabilityState::ok);
  EXPECT_THAT(found.detail, AllOf(HasSubstr("scope"), HasSubstr("memory, swap, cpus, pids, io")));
  EXPECT_EQ(found.fix, "");
  facts.io = false;
  facts.why = "io was not delegated";
  facts.fix = "delegate it";
  found = cgroup_limits(facts, false, {});
  EXPECT_EQ(found.state, CapabilityState::limited);
  EXPECT_THAT(found.detail, AllOf(HasSubstr("pids; io was not delegated"), Not(HasSubstr("pids, io"))));
  EXPECT_EQ(found.fix, "delegate it");
  found = cgroup_limits(facts, true, {"limits.memory"});
  EXPECT_EQ(found.state, CapabilityState::missing);
  EXPECT_THAT(found.detail, HasSubstr("did not make"));
}

}  // namespace
}  // namespace sandy::host
