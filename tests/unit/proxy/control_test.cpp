#include "proxy/control.h"

#include <gtest/gtest.h>

namespace sandy::proxy {
namespace {

TEST(ParseRules, EachListHasItsOwn) {
  const auto rules = parse_rules("allow a.example\nallow *.b.example:8443\ndeny x.b.example\nprivate 10.0.0.1:5432\n");
  ASSERT_TRUE(rules);
  EXPECT_TRUE(rules->decide("a.example", 443).allowed);
  EXPECT_FALSE(rules->decide("a.example", 22).allowed);
  EXPECT_TRUE(rules->decide("y.b.example", 8443).allowed);
  EXPECT_FALSE(rules->decide("x.b.example", 8443).allowed);
  const auto decision = rules->decide(*policy::parse_ip_address("10.0.0.1"), 5432);
  EXPECT_TRUE(decision.allowed && decision.private_target);
}

TEST(ParseRules, NoRulesAllowNothing) {
  const auto rules = parse_rules("");
  ASSERT_TRUE(rules);
  EXPECT_FALSE(rules->decide("a.example", 443).allowed);
}

TEST(ParseRules, OneThatIsNoneSpoilsAll) {
  for (const char* text : {"allow", "allow ", "allow a b", "permit a.example", "allow a.example\n\n", "allow *"}) EXPECT_FALSE(parse_rules(text)) << text;
}

}  // namespace
}  // namespace sandy::proxy
