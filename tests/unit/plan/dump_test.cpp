#include "plan/dump.h"

#include <gtest/gtest.h>

namespace sandy::plan {
namespace {

SandboxPlan plan_with_link(const std::string& target) {
  SandboxPlan plan;
  plan.slots.push_back({.kind = FdSlot::Kind::host_path, .text = "/usr"});
  plan.mounts.push_back({.kind = MountStep::Kind::ro_bind, .dest = "/usr", .slot = 0});
  plan.mounts.push_back({.kind = MountStep::Kind::symlink, .dest = "/l", .target = target});
  return plan;
}

// A link's text is anything: it must not be taken for a descriptor's number or an option.
TEST(Dump, LinkTargetsAreText) {
  for (const std::string target : {"-1", "-1000", "-1001", "-1x", "-99999999999999999999", "--bind-fd", "", "a b"}) {
    SCOPED_TRACE(target);
    const auto plan = plan_with_link(target);
    EXPECT_NE(dump_text(plan).find("\n  --symlink " + target + " /l\n"), std::string::npos) << dump_text(plan);
    EXPECT_NE(dump_text(plan).find("\n  --ro-bind-fd <host /usr> /usr\n"), std::string::npos);
    EXPECT_NE(dump_json(plan).find("\"" + target + "\""), std::string::npos);
  }
}

TEST(Dump, IsOneLinePerOptionWhateverTheNames) {
  EXPECT_NE(dump_text(plan_with_link("x\n--bind / /\x1b[2J\xff")).find("--symlink x\\x0a--bind / /\\x1b[2J\\xff /l\n"), std::string::npos);
}

TEST(Dump, SeccompRowsAreShownIfGiven) {
  const SandboxPlan plan;
  EXPECT_NE(dump_text(plan, {"allow read"}).find("seccomp: default\n  allow read\n"), std::string::npos);
  EXPECT_NE(dump_json(plan, {"allow read"}).find("\"allow read\""), std::string::npos);
}

}  // namespace
}  // namespace sandy::plan
