#include "cgroup/cgroup_text.h"

#include <gmock/gmock.h>

namespace sandy::cgroup {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(UnifiedPath, IsTheLineOfHierarchyZero) {
  EXPECT_EQ(unified_path("0::/user.slice/user-1000.slice/session-3.scope\n"), "/user.slice/user-1000.slice/session-3.scope");
  EXPECT_EQ(unified_path("12:pids:/a\n1:name=systemd:/b\n0::/c d\n"), "/c d");
  EXPECT_EQ(unified_path("0::/\n"), "/");
  for (const char* none : {"", "12:pids:/a\n", "0::", "0::relative\n", "10::/x\n"}) EXPECT_EQ(unified_path(none), std::nullopt) << none;
}

TEST(FlatValue, FindsItsKeyAlone) {
  constexpr const char* kEvents = "low 0\nhigh 1\nmax 22\noom 3\noom_kill 4\noom_group_kill 0\n";
  EXPECT_EQ(flat_value(kEvents, "oom_kill"), 4);
  EXPECT_EQ(flat_value(kEvents, "oom"), 3);
  EXPECT_EQ(flat_value(kEvents, "kill"), std::nullopt);
  EXPECT_EQ(flat_value("usage_usec 18446744073709551615\n", "usage_usec"), UINT64_MAX);
  for (const char* wrong : {"", "key", "key \n", "key x\n", "key -1\n", "key 18446744073709551616\n"}) EXPECT_EQ(flat_value(wrong, "key"), std::nullopt) << wrong;
}

TEST(SingleValue, HasNoneForMax) {
  EXPECT_EQ(single_value("4096\n"), 4096);
  EXPECT_EQ(single_value("max\n"), std::nullopt);
  EXPECT_EQ(single_value(""), std::nullopt);
}

TEST(IoTotal, AddsUpDevices) {
  constexpr const char* kStat = "254:0 rbytes=100 wbytes=1 rios=2 wios=3\n254:16 rbytes=23 wbytes=4 rios=0 wios=0\n8:0 \n";
  EXPECT_EQ(io_total(kStat, "rbytes"), 123);
  EXPECT_EQ(io_total(kStat, "wbytes"), 5);
  EXPECT_EQ(io_total(kStat, "bytes"), 0);
  EXPECT_EQ(io_total("", "rbytes"), 0);
}

TEST(IoLimit, IsTheLowest) {
  constexpr const char* kMax = "254:0 rbps=max wbps=5000000 riops=max wiops=max\n254:16 rbps=max wbps=7000000 riops=3 wiops=max\n";
  EXPECT_EQ(io_limit(kMax, "wbps"), 5'000'000);
  EXPECT_EQ(io_limit(kMax, "rbps"), std::nullopt);
  EXPECT_EQ(io_limit("", "wbps"), std::nullopt);
}

TEST(Pressure, IsOfSome) {
  EXPECT_EQ(pressure_some_avg10("some avg10=1.50 avg60=0.00 avg300=0.00 total=12\nfull avg10=9.00 avg60=0.00 avg300=0.00 total=0\n"), 1.5);
  EXPECT_EQ(pressure_some_avg10("full avg10=9.00\n"), std::nullopt);
  EXPECT_EQ(pressure_some_avg10(""), std::nullopt);
}

TEST(ProcessIds, LeavesOutTheUnseen) {
  EXPECT_THAT(process_ids("12\n0\n345\n"), ElementsAre(12, 345));
  EXPECT_THAT(process_ids(""), IsEmpty());
  EXPECT_THAT(process_ids("x\n-3\n99999999999\n7\n"), ElementsAre(7));
}

TEST(InnermostPid, IsTheLast) {
  // A name is what a process calls itself; a newline in it is written as \n.
  EXPECT_EQ(innermost_pid("Name:\tNSpid: 1\nPid:\t4711\nNSpid:\t4711\t33\t5\nNSpgid:\t1\t2\t3\n"), 5);
  EXPECT_EQ(innermost_pid("NSpid:\t4711\n"), 4711);
  EXPECT_EQ(innermost_pid("NSpid:\n"), std::nullopt);
  EXPECT_EQ(innermost_pid("Name:\tx\n"), std::nullopt);
}

TEST(HasWord, IsWhole) {
  EXPECT_TRUE(has_word("cpu io memory pids\n", "memory"));
  EXPECT_TRUE(has_word("pids", "pids"));
  EXPECT_FALSE(has_word("cpuset memory\n", "cpu"));
  EXPECT_FALSE(has_word("", "cpu"));
}

}  // namespace
}  // namespace sandy::cgroup
