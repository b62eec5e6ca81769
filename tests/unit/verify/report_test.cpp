#include "verify/report.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

namespace sandy::verify {
namespace {

Report sample() {
  Report out;
  out.findings.push_back({{"read-home", AttackClass::files, {37, 45}, "read a file"}, Verdict::pass, "refused: ENOENT", ""});
  out.findings.push_back({{"write-home", AttackClass::files, {28}, "make a file in your home"}, Verdict::fail, "succeeded", "--write /home/me"});
  out.findings.push_back({{"x32", AttackClass::syscalls, {24}, "make an x32 call"}, Verdict::untried, "refused outside a sandbox too: ENOSYS", ""});
  out.degraded.emplace_back("limits.memory");
  out.milliseconds = 1'540;
  return out;
}

TEST(Table, IsAlignedAndSumsUp) {
  EXPECT_EQ(as_table(sample()),
            "class     rows   attack                          what happened\n"
            "files     37,45  read a file               PASS  refused: ENOENT\n"
            "files     28     make a file in your home  FAIL  succeeded (the policy allows it: --write /home/me)\n"
            "syscalls  24     make an x32 call          -     not possible to try here: refused outside a sandbox too: ENOSYS\n"
            "not enforced by control groups here: limits.memory (watched by the agent)\n"
            "3 attacks: 1 refused, 1 succeeded, 1 not possible to try here (1.5 s)\n");
}

TEST(Json, HasTheVersionedShape) {
  const auto document = nlohmann::json::parse(as_json(sample()));
  EXPECT_EQ(document["version"], 1);
  EXPECT_EQ(document["sandy"], SANDY_VERSION);
  EXPECT_EQ(document["passed"], false);
  EXPECT_EQ(document["refused"], 1);
  EXPECT_EQ(document["succeeded"], 1);
  EXPECT_EQ(document["untried"], 1);
  EXPECT_EQ(document["seconds"], 1.54);
  EXPECT_EQ(document["degraded"], nlohmann::json::array({"limits.memory"}));
  ASSERT_EQ(document["attacks"].size(), 3U);
  EXPECT_EQ(document["attacks"][0]["rows"], nlohmann::json::array({37, 45}));
  EXPECT_FALSE(document["attacks"][0].contains("allowed_by"));
  EXPECT_EQ(document["attacks"][1]["allowed_by"], "--write /home/me");
  EXPECT_EQ(document["attacks"][2]["verdict"], "untried");
  EXPECT_EQ(document["attacks"][2]["class"], "syscalls");
}

TEST(Json, PassesWithNothingButWhatCantBeTried) {
  Report report = sample();
  report.findings.erase(report.findings.begin() + 1);
  EXPECT_EQ(nlohmann::json::parse(as_json(report))["passed"], true);
}

TEST(Classes, HaveWordsThatLeadBack) {
  for (const auto one : kClasses) EXPECT_EQ(attack_class(word(one)), one);
  EXPECT_FALSE(attack_class("file"));
}

}  // namespace
}  // namespace sandy::verify
