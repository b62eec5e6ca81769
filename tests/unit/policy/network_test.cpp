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
      {R"("network": {"mode": "allowlist"})",
       "network.mode",
       {"no network gateway", "use \"none\""}},
      {allow("github.com"), "network.mode", {"no network gateway"}},
      {allow("*.github.com:443"), "network.mode", {"no network gateway"}},
      {allow("[2001:db8::/32]:443"), "network.mode", {"no network gateway"}},
      // A rule with a bad shape is named before the version is.
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
  });
}

}  // namespace
}  // namespace sandy::policy
