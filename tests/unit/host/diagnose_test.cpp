#include "host/diagnose.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sandy::host {
namespace {

using testing::HasSubstr;
using testing::Not;

struct Case {
  const char* message;
  const char* why;
  const char* fix;
};

// Messages as bubblewrap prints them; B119's is "Failed to make / slave".
constexpr Case kCases[] = {
    {"bwrap: Failed to make / slave: Permission denied\n", "mount propagation", "AppArmor"},
    {"bwrap: setting up uid map: Permission denied\n", "AppArmor", "bwrap-userns-restrict"},
    {"bwrap: loopback: Failed RTM_NEWADDR: Operation not permitted\n", "AppArmor", "bwrap-userns-restrict"},
    {"bwrap: Can't mount proc on /newroot/proc: Operation not permitted\n", "fresh /proc", "systempaths=unconfined"},
    {"bwrap: Unknown option --bind-fd\n", "too old", "0.10.0"},
    {"bwrap: Creating new namespace failed: Operation not permitted\n", "namespaces", "dmesg"},
    {"bwrap: No permissions to create new namespace, likely because the kernel does not allow non-privileged user namespaces.\n", "namespaces", "dmesg"},
    {"bwrap: The --size option is not permitted in setuid mode\n", "setuid", "chmod u-s"},
    {"bwrap: Unexpected capabilities but not setuid, old file caps config?\n", "capabilities", "setpriv"},
    {"bwrap: Can't find source path /proc/self/fd/7: Permission denied\n", "may not enter", "chmod o+x"},
    {"bwrap: execvp /run/sandy-agent: Exec format error\n", "agent", "install Sandy again"},
    {"sandy-launch: open_tree: Operation not permitted\n", "mount namespace", "unshare --mount"},
    {"sandy-launch: becoming an unprivileged user: Invalid argument\n", "65534", "range of users"},
};

TEST(KnownMessage, SaysWhyAndWhatToDo) {
  for (const auto& row : kCases) {
    const auto known = known_message(row.message);
    ASSERT_TRUE(known) << row.message;
    EXPECT_THAT(known->why, HasSubstr(row.why)) << row.message;
    EXPECT_THAT(known->fix, HasSubstr(row.fix)) << row.message;
    EXPECT_THAT(known->fix, Not(HasSubstr("--privileged"))) << row.message;
    EXPECT_THAT(known->fix, Not(HasSubstr("apparmor=unconfined"))) << row.message;
    EXPECT_THAT(known->fix, Not(HasSubstr("seccomp=unconfined"))) << row.message;
  }
  EXPECT_FALSE(known_message("bwrap: something new\n"));
  EXPECT_FALSE(known_message(""));
}

TEST(ExplainStartFailure, HasThreePrintableParts) {
  plan::SandboxPlan plan;
  plan.bwrap = "/proc/self/exe";
  for (const std::string message : {"bwrap: Unknown option --x\n", "", "\x1b[2J\xff\n", "one\ntwo\nthree\nfour\n"}) {
    const Error error = explain_start_failure(plan, message, {"sandbox", "did not answer", ""});
    EXPECT_EQ(error.what, "the sandbox could not start");
    EXPECT_FALSE(error.why.empty());
    EXPECT_FALSE(error.fix.empty());
    EXPECT_EQ(error.why, printable(error.why));
    EXPECT_EQ(error.fix, printable(error.fix));
  }
  const Error silent = explain_start_failure(plan, "", {"sandbox", "did not answer", ""});
  EXPECT_THAT(silent.why, HasSubstr("did not answer"));
}

TEST(ExplainStartFailure, KeepsTheLastLines) {
  plan::SandboxPlan plan;
  plan.bwrap = "/proc/self/exe";
  const Error error = explain_start_failure(plan, "one\ntwo\nthree\nfour\n", {"sandbox", "", ""});
  EXPECT_THAT(error.why, HasSubstr("two; three; four"));
  EXPECT_THAT(error.why, Not(HasSubstr("one")));
}

}  // namespace
}  // namespace sandy::host
