#include "policy/validate.h"

#include "policy_testing.h"

namespace sandy::policy {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(Validate, AnEmptyDraftIsTheDefaultPolicy) {
  const auto policy = validate(PolicyDraft{}, test_caller());
  ASSERT_TRUE(policy) << policy.error().text();
  EXPECT_EQ(policy->fields(), PolicyFields{});
  EXPECT_THAT(policy->degraded(), ElementsAre("limits.memory", "limits.swap", "limits.pids"));
}

TEST(Validate, RefusesHandSetLimitsThatTheMachineCantEnforce) {
  for (const char* key : {"memory", "swap", "cpus", "pids", "io_read", "io_write"}) {
    const std::string amount = std::string(key) == "memory" ? "\"1G\"" : "64";
    const std::string limits = "\"limits\": {\"" + std::string(key) + "\": " + amount;
    const auto refused = policy_of(policy_json(limits + "}"));
    ASSERT_FALSE(refused) << key;
    EXPECT_TRUE(refused.error().what.starts_with("limits." + std::string(key) + ": \""))
        << refused.error().what;
    EXPECT_THAT(refused.error().why, HasSubstr("needs a control group"));
    EXPECT_THAT(refused.error().fix, HasSubstr("limits.best_effort"));
    const auto degraded = policy_of(policy_json(limits + ", \"best_effort\": true}"));
    ASSERT_TRUE(degraded) << degraded.error().text();
    EXPECT_THAT(degraded->degraded(), testing::Contains("limits." + std::string(key)));
    const auto enforced =
        policy_of(policy_json(limits + "}"), Enforcement{true, true, true, true, true, "", ""});
    ASSERT_TRUE(enforced) << enforced.error().text();
    EXPECT_THAT(enforced->degraded(), IsEmpty());
  }
}

TEST(Validate, NamesTheKeyThatTheUserWrote) {
  PolicyDraft draft;
  draft.limits.memory = {"2G", "--memory"};
  auto policy =
      validate(draft, test_caller(), Enforcement{.reason = "the user's systemd did not answer"});
  ASSERT_FALSE(policy);
  EXPECT_EQ(policy.error().what, "--memory: \"2G\"");
  EXPECT_EQ(policy.error().why, "the user's systemd did not answer");
  draft.limits.memory.reset();
  draft.filesystem.read.push_back({"~/a", "--read"});
  draft.filesystem.deny.push_back({"~/a/", "--deny"});
  policy = validate(draft, test_caller());
  ASSERT_FALSE(policy);
  EXPECT_THAT(policy.error().text(),
              HasSubstr("--deny: \"/home/user/a\": deny contradicts --read"));
}

TEST(Validate, WhatIsValidIsReadableAgain) {
  PolicyDraft draft;
  for (int i = 0; i < 400; ++i) {
    draft.filesystem.deny.push_back({"/d/" + std::to_string(i) + std::string(4000, 'x'), "--deny"});
  }
  const auto policy = validate(draft, test_caller());
  ASSERT_FALSE(policy);
  EXPECT_EQ(policy.error().text(), "policy: larger than 1048576 bytes as JSON");
}

TEST(Validate, ErrorsArePrintable) {
  for (const char* members :
       {R"("filesystem": {"read": ["~\u001b[31m\n"]})", R"("process": {"hostname": "\u009b31m"})",
        R"("seccomp": "\u001b]0;x\u0007")",
        R"("filesystem": {"read": [{"bytes": "L3Byb2Mv/xs="}]})",
        R"("environment": {"set": {"\u001b": "x"}})"}) {
    const auto policy = policy_of(policy_json(members));
    ASSERT_FALSE(policy) << members;
    EXPECT_EQ(printable(policy.error().what + policy.error().why + policy.error().fix),
              policy.error().what + policy.error().why + policy.error().fix);
  }
}

}  // namespace
}  // namespace sandy::policy
