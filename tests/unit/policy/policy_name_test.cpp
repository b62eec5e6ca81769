#include "policy/policy_name.h"

#include <gtest/gtest.h>

namespace sandy::policy {
namespace {

TEST(PolicyName, IsAWord) {
  for (const char* name : {"a", "7", "python-data", "node_web", "0-_", "x--"}) EXPECT_TRUE(is_policy_name(name)) << name;
}

// All that a path can look like is one.
TEST(PolicyName, IsNoPath) {
  for (const std::string_view path : {"", "-", "--", "_a", "./a", "../a", "/a", "a/b", "a.json", ".a", "a.", "A", "aB", "~", "~a", "a b", "a\n", "a*", "ä"}) {
    EXPECT_FALSE(is_policy_name(path)) << path;
  }
  EXPECT_FALSE(is_policy_name(std::string_view("a\0b", 3)));
}

}  // namespace
}  // namespace sandy::policy
