#include "policy/words.h"

#include <gtest/gtest.h>

namespace sandy::policy {
namespace {

TEST(Choose, GivesTheIndexOrSaysWhatThereIs) {
  EXPECT_EQ(choose({"b", "k"}, {"a", "b"}).value(), 1U);
  EXPECT_EQ(choose({"privat", "--mode"}, {"private", "bind"}).error().text(),
            "--mode: \"privat\": must be \"private\" or \"bind\"\nhint: did you mean \"private\"?");
  EXPECT_EQ(choose({"", "k"}, {"a", "b", "c"}).error().text(),
            "k: \"\": must be \"a\", \"b\" or \"c\"");
  EXPECT_FALSE(choose({"Private", "k"}, {"private"}));
}

}  // namespace
}  // namespace sandy::policy
