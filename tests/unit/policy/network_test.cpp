#include "policy/network.h"

#include "policy_testing.h"

namespace sandy::policy {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(CheckNetwork, NoneIsAllThereIs) {
  EXPECT_EQ(valid("")->network, Network{});
  EXPECT_EQ(valid(R"("network": {"mode": "none", "allow": [], "deny": []})")->network, Network{});
}

TEST(CheckNetwork, AnEmptyListAllowsNothing) {
  const auto policy = valid(R"("network": {"mode": "allowlist"})");
  EXPECT_EQ(policy->network, (Network{NetworkMode::allowlist, {}, {}, {}}));
}

TEST(CheckNetwork, RulesGetTheirOneForm) {
  const auto policy = valid(R"("network": {"mode": "allowlist", "allow": ["GitHub.com.", "*.b\u00fccher.example:8443", "[2001:DB8::/32]:443"],
                               "deny": ["gist.github.com"], "allow_private": ["10.0.0.1:5432"]})");
  std::vector<std::string> texts;
  for (const auto* list : {&policy->network.allow, &policy->network.deny, &policy->network.allow_private}) {
    for (const auto& rule : *list) texts.push_back(rule.text());
  }
  EXPECT_THAT(texts, ElementsAre("github.com", "*.xn--bcher-kva.example:8443", "[2001:db8::/32]:443", "gist.github.com", "10.0.0.1:5432"));
}

TEST(CheckNetwork, PortsAndAnswers) {
  const auto policy = valid(R"("network": {"mode": "allowlist", "publish": ["3000", "8080:5173"], "dns_answers": "real"})");
  EXPECT_THAT(policy->network.publish, ElementsAre(PublishedPort{3000, 0}, PublishedPort{5173, 8080}));
  EXPECT_EQ(text(policy->network.publish[0]), "3000");
  EXPECT_EQ(text(policy->network.publish[1]), "8080:5173");
  EXPECT_TRUE(policy->network.real_dns_answers);
  EXPECT_FALSE(valid(R"("network": {"mode": "allowlist", "dns_answers": "synthetic"})")->network.real_dns_answers);
}

TEST(CheckNetwork, Refuses) {
  const auto allow = [](const std::string& rule) {
    return R"("network": {"mode": "allowlist", "allow": [")" + rule + "\"]}";
  };
  expect_refused({
      {R"("network": {"allow": ["github.com"]})",
       "network.allow[0]",
       {"network.mode is \"none\"", "allowlist"}},
      {R"("network": {"mode": "none", "deny": ["github.com"]})",
       "network.deny[0]",
       {"network.mode is \"none\""}},
      {R"("network": {"mode": "none", "allow_private": ["10.0.0.1:80"]})",
       "network.allow_private[0]",
       {"none"}},
      {R"("network": {"mode": "allowlst"})", "network.mode", {"did you mean \"allowlist\"?"}},
      {R"("network": {"mode": "host"})", "network.mode", {"must be \"none\" or \"allowlist\""}},
      {allow(""), "network.allow[0]", {"empty rule"}},
      {allow("*"), "network.allow[0]", {"every host"}},
      {allow("*."), "network.allow[0]", {"empty name"}},
      {allow("a.*.org"), "network.allow[0]", {"a *"}},
      {allow("evil org"), "network.allow[0]", {"space"}},
      {allow("a.org\\r\\nX: y"), "network.allow[0]", {"space"}},
      {allow(std::string(2000, 'a')), "network.allow[0]", {"longer"}},
      {allow("10.0.0.0/8"), "network.allow[0]", {"without a port", "10.0.0.0/8:PORT"}},
      {R"("network": {"mode": "allowlist", "allow_private": ["db.example"]})", "network.allow_private[0]", {"without a port"}},
      {R"("network": {"mode": "allowlist", "allow_private": ["*.db.example:1"]})", "network.allow_private[0]", {"more than one target"}},
      {R"("network": {"mode": "allowlist", "allow_private": ["10.0.0.0/8:1"]})", "network.allow_private[0]", {"more than one target"}},
      {R"("network": {"mode": "allowlist", "allow": ["a.org", "B.org."], "deny": ["c.org", "b.org"]})",
       "network.deny[1]",
       {"contradicts network.allow[1]"}},
      {R"("network": {"mode": "allowlist", "deny": ["*.com"]})", "network.deny[0]", {"public suffix"}},
      {R"("network": {"publish": ["3000"]})", "network.publish[0]", {"network.mode is \"none\""}},
      {R"("network": {"mode": "allowlist", "publish": ["3000", "x:3000"]})", "network.publish[1]", {"no port", "HOST_PORT:PORT"}},
      {R"("network": {"mode": "allowlist", "publish": ["0"]})", "network.publish[0]", {"no port"}},
      {R"("network": {"mode": "allowlist", "publish": ["65536"]})", "network.publish[0]", {"no port"}},
      {R"("network": {"mode": "allowlist", "publish": ["+1"]})", "network.publish[0]", {"no port"}},
      {R"("network": {"mode": "allowlist", "publish": ["3000", "80:3000"]})", "network.publish[1]", {"published already"}},
      {R"("network": {"mode": "allowlist", "publish": ["80:1", "80:2"]})", "network.publish[1]", {"published already"}},
      {R"("network": {"dns_answers": "real"})", "network.dns_answers", {"network.mode is \"none\""}},
      {R"("network": {"mode": "allowlist", "dns_answers": "yes"})", "network.dns_answers", {"\"synthetic\" or \"real\""}},
  });
}

}  // namespace
}  // namespace sandy::policy
