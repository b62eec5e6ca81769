#include "host/doctor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace sandy::host {
namespace {

using testing::HasSubstr;
using State = CapabilityState;

Capability refused() { return {.name = "user namespaces", .state = State::missing, .detail = "refused", .needs = "every sandbox", .fix = "a command", .proven_by_start = true}; }

TEST(Reconcile, AStartProvesWhatThisProcessAloneMayNot) {
  const auto found = reconcile({refused()}, true);
  EXPECT_EQ(found[0].state, State::ok);
  EXPECT_THAT(found[0].detail, HasSubstr("refused"));
  EXPECT_EQ(found[0].fix, "");
}

TEST(Reconcile, KeepsWhatIsMissingWithoutAStart) {
  const auto found = reconcile({refused()}, false);
  EXPECT_EQ(found[0].state, State::missing);
  EXPECT_EQ(found[0].fix, "a command");
}

TEST(Reconcile, AStartProvesNothingOfWhatItDoesNotNeed) {
  auto other = refused();
  other.proven_by_start = false;
  EXPECT_EQ(reconcile({other}, true)[0].state, State::missing);
}

TEST(Reconcile, TextsArePrintableAndComplete) {
  auto odd = refused();
  odd.detail = "a\nb\x1b";
  odd.fix = "";
  const auto found = reconcile({odd}, false);
  EXPECT_EQ(found[0].detail, "a\\x0ab\\x1b");
  EXPECT_NE(found[0].fix, "");
}

TEST(ExamineMachine, NamesAreUniqueAndReasonsComplete) {
  BubblewrapExamination bubblewrap;
  StartFindings start;
  start.error = Error{"the sandbox could not start", "because", "do this"};
  std::set<std::string> names;
  for (const auto& capability : examine_machine(bubblewrap, start)) {
    EXPECT_TRUE(names.insert(capability.name).second) << capability.name;
    EXPECT_FALSE(capability.detail.empty()) << capability.name;
    EXPECT_FALSE(capability.needs.empty()) << capability.name;
    EXPECT_EQ(capability.fix.empty(), capability.state == State::ok) << capability.name << ": " << capability.fix;
  }
  EXPECT_TRUE(names.contains("sandbox start"));
}

}  // namespace
}  // namespace sandy::host
