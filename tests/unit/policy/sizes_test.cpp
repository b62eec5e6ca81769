#include "policy/sizes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace sandy::policy {
namespace {

using testing::HasSubstr;

constexpr std::uint64_t kKi = 1024;
constexpr std::uint64_t kMi = 1024 * kKi;
constexpr std::uint64_t kGi = 1024 * kMi;
constexpr std::uint64_t kTi = 1024 * kGi;

TEST(ParseSize, Accepts) {
  const std::vector<std::pair<const char*, std::uint64_t>> rows{
      {"0", 0},
      {"1", 1},
      {"1048576", kMi},
      {"007", 7},
      {"12B", 12},
      {"100k", 100 * kKi},
      {"100K", 100 * kKi},
      {"100KB", 100 * kKi},
      {"100KiB", 100 * kKi},
      {"512M", 512 * kMi},
      {"512m", 512 * kMi},
      {"512 MB", 512 * kMi},
      {"2G", 2 * kGi},
      {"1.5GiB", 3 * kGi / 2},
      {"0.5k", 512},
      {"1.0", 1},
      {"0.3G", 322122547},  // 322122547.2, cut
      {"1T", kTi},
      {"16777215T", 16777215 * kTi},
      {"18446744073709551615", UINT64_MAX},
      {"0.000000000000000001T", 0},
  };
  for (const auto& [text, bytes] : rows) {
    const auto size = parse_size({text, "key"});
    ASSERT_TRUE(size) << text << ": " << size.error().text();
    EXPECT_EQ(*size, bytes) << text;
  }
}

TEST(ParseSize, Refuses) {
  const std::vector<std::pair<const char*, const char*>> rows{
      {"", "not a size"},
      {" 1", "not a size"},
      {"1  M", "not a size"},
      {"1 ", "not a size"},
      {"M", "not a size"},
      {"-1", "negative"},
      {"+1", "not a size"},
      {"1e9", "not a size"},
      {"0x10", "not a size"},
      {"1,5G", "not a size"},
      {"1.G", "not a size"},
      {".5G", "not a size"},
      {"1.5", "whole number of bytes"},
      {"2X", "not a size"},
      {"2P", "not a size"},
      {"2GG", "not a size"},
      {"2Gi", "not a size"},
      {"2G/s", "not a size"},
      {"nan", "not a size"},
      {"inf", "not a size"},
      {"18446744073709551616", "64 bits"},
      {"16777216T", "64 bits"},
      {"99999999999999999999999999", "64 bits"},
      {"1.0000000000000000001G", "18 decimals"},
  };
  for (const auto& [text, words] : rows) {
    const auto size = parse_size({text, "limits.memory"});
    ASSERT_FALSE(size) << text;
    EXPECT_TRUE(size.error().what.starts_with("limits.memory: \"")) << size.error().what;
    EXPECT_THAT(size.error().why, HasSubstr(words)) << text;
  }
}

TEST(ParseSize, RefusesBytesThatAreNoText) {
  const auto size = parse_size({std::string("1\0G", 3), "--memory"});
  ASSERT_FALSE(size);
  EXPECT_EQ(size.error().what, "--memory: \"1\\x00G\"");
}

TEST(ParseDuration, Accepts) {
  const std::vector<std::pair<const char*, std::uint64_t>> rows{
      {"0", 0},
      {"600", 600'000},
      {"1.5", 1'500},
      {"0.30000000000000004", 300},
      {"500ms", 500},
      {"90s", 90'000},
      {"10m", 600'000},
      {"1h30m", 5'400'000},
      {"1h 30m", 5'400'000},
      {"1h30m5.5s", 5'405'500},
      {"2d", 172'800'000},
      {"1d2h3m4s5ms", 93'784'005},
      {"0.5h", 1'800'000},
      {"213503982334d", 18446744073657600000U},
  };
  for (const auto& [text, ms] : rows) {
    const auto duration = parse_duration({text, "key"});
    ASSERT_TRUE(duration) << text << ": " << duration.error().text();
    EXPECT_EQ(*duration, ms) << text;
  }
}

TEST(ParseDuration, Refuses) {
  const std::vector<std::pair<const char*, const char*>> rows{
      {"", "not a duration"},
      {"-5", "negative"},
      {"10x", "not a duration"},
      {"10M", "not a duration"},
      {"10min", "not a duration"},
      {"1h30", "without its unit"},
      {"600 ", "without its unit"},
      {"30m1h", "fall from left to right"},
      {"1m1m", "fall from left to right"},
      {"1.5h30m", "only the last"},
      {"h", "not a duration"},
      {"1h ", "not a duration"},
      {"1h  30m", "not a duration"},
      {"213503982335d", "64 bits"},
      {"18446744073709551616", "64 bits"},
      {"18446744073709551615s", "64 bits"},
      {"213503982334d23h", "64 bits"},
  };
  for (const auto& [text, words] : rows) {
    const auto duration = parse_duration({text, "--wall-time"});
    ASSERT_FALSE(duration) << text << " = " << *duration;
    EXPECT_TRUE(duration.error().what.starts_with("--wall-time: \"")) << duration.error().what;
    EXPECT_THAT(duration.error().why, HasSubstr(words)) << text;
  }
}

TEST(ParseCpus, AcceptsAndRefuses) {
  for (const auto& [text, cpus] : std::vector<std::pair<const char*, double>>{
           {"1.5", 1.5}, {"2", 2}, {"0.25", 0.25}, {"0", 0}, {"0.30000000000000004441", 0.3}}) {
    const auto parsed = parse_cpus({text, "key"});
    ASSERT_TRUE(parsed) << text;
    EXPECT_DOUBLE_EQ(*parsed, cpus) << text;
  }
  const std::string huge(400, '9');
  for (const char* text :
       {"", "-1", "+1", "nan", "inf", "1e3", "1.", ".5", "1.5x", "0x1", " 1", huge.c_str()}) {
    const auto parsed = parse_cpus({text, "limits.cpus"});
    ASSERT_FALSE(parsed) << text;
    EXPECT_TRUE(parsed.error().what.starts_with("limits.cpus: \"")) << parsed.error().what;
  }
}

TEST(ParseCount, AcceptsAndRefuses) {
  EXPECT_EQ(parse_count({"0", "k"}).value(), 0U);
  EXPECT_EQ(parse_count({"512", "k"}).value(), 512U);
  EXPECT_EQ(parse_count({"18446744073709551615", "k"}).value(), UINT64_MAX);
  for (const char* text : {"", "-1", "+1", "1.5", "1k", " 1", "1 ", "18446744073709551616"}) {
    EXPECT_FALSE(parse_count({text, "k"})) << text;
  }
  EXPECT_THAT(parse_count({"-1", "--pids"}).error().text(), HasSubstr("negative"));
}

TEST(Quoted, CutsAndEscapes) {
  EXPECT_EQ(quoted("k", "a\x1b[31m\n"), "k: \"a\\x1b[31m\\x0a\"");
  EXPECT_LT(quoted("k", std::string(100'000, 'x')).size(), 200U);
}

}  // namespace
}  // namespace sandy::policy
