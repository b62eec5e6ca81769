#include "policy/enforcement.h"

#include "policy_testing.h"

namespace sandy::policy {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr char kAll[] =
    R"("limits": {"memory": "1G", "swap": 0, "cpus": 1, "pids": 64, "io_read": 1, "io_write": 1, "best_effort": true})";

Enforcement everything() {
  return {true, true, true, true, true, ""};
}

TEST(Unenforceable, DefaultsThatNothingEnforces) {
  EXPECT_THAT(unenforceable(PolicyFields{}, Enforcement{}),
              ElementsAre(UnenforceableLimit{"limits.memory", false},
                          UnenforceableLimit{"limits.swap", false},
                          UnenforceableLimit{"limits.pids", false}));
}

TEST(Unenforceable, LimitsSetByHand) {
  const auto fields = valid(kAll).fields();
  EXPECT_THAT(
      unenforceable(fields, Enforcement{}),
      ElementsAre(
          UnenforceableLimit{"limits.memory", true}, UnenforceableLimit{"limits.swap", true},
          UnenforceableLimit{"limits.cpus", true}, UnenforceableLimit{"limits.pids", true},
          UnenforceableLimit{"limits.io_read", true}, UnenforceableLimit{"limits.io_write", true}));
  EXPECT_THAT(unenforceable(fields, everything()), IsEmpty());
}

TEST(Unenforceable, EachFlagFreesItsOwnLimits) {
  const auto fields = valid(kAll).fields();
  const std::vector<std::pair<bool Enforcement::*, std::vector<std::string_view>>> rows{
      {&Enforcement::memory, {"limits.memory"}},
      {&Enforcement::swap, {"limits.swap"}},
      {&Enforcement::cpus, {"limits.cpus"}},
      {&Enforcement::pids, {"limits.pids"}},
      {&Enforcement::io, {"limits.io_read", "limits.io_write"}},
  };
  for (const auto& [flag, keys] : rows) {
    Enforcement enforcement = everything();
    enforcement.*flag = false;
    std::vector<std::string_view> missing;
    for (const auto& limit : unenforceable(fields, enforcement)) missing.push_back(limit.key);
    EXPECT_EQ(missing, keys);
  }
}

TEST(Unenforceable, OtherLimitsNeedNoCgroup) {
  const auto policy =
      valid(R"("limits": {"wall_time": 5, "open_files": 64, "file_size": 1, "tmp_size": "1M", "log_size": 0})");
  EXPECT_THAT(policy.degraded(), ElementsAre("limits.memory", "limits.swap", "limits.pids"));
}

}  // namespace
}  // namespace sandy::policy
