#include "session/wire/configuration.h"

#include <gtest/gtest.h>

namespace sandy::wire {
namespace {

Configuration full() {
  Configuration out;
  out.workspace = "/workspace";
  out.home = "/home/u\xff\n";
  out.cwd = "";
  out.shell = "/bin/dash";
  out.root_names = {"usr", "with space", "\xfe"};
  out.environment = {"A=1", "B=two\nlines", "EMPTY="};
  out.workspace_names = true;
  out.open_files = 1024;
  out.file_size = 1ULL << 40;
  return out;
}

void expect_equal(const Configuration& a, const Configuration& b) {
  EXPECT_EQ(a.workspace, b.workspace);
  EXPECT_EQ(a.home, b.home);
  EXPECT_EQ(a.cwd, b.cwd);
  EXPECT_EQ(a.shell, b.shell);
  EXPECT_EQ(a.root_names, b.root_names);
  EXPECT_EQ(a.environment, b.environment);
  EXPECT_EQ(a.workspace_names, b.workspace_names);
  EXPECT_EQ(a.open_files, b.open_files);
  EXPECT_EQ(a.file_size, b.file_size);
}

// Over the wire: head to bytes and back.
Result<Configuration> through_bytes(const Frame& frame) {
  const std::string head = encode_head(frame.header, frame.payload.size());
  auto read = parse_header(std::string_view(head).substr(kPrefixBytes));
  if (!read) return std::unexpected(read.error());
  read->payload = frame.payload;
  return parse_configuration(*read);
}

TEST(Configuration, SurvivesTheWire) {
  for (const auto& configuration : {full(), Configuration{}}) {
    const auto read = through_bytes(encode_configuration(configuration));
    ASSERT_TRUE(read) << read.error().text();
    expect_equal(*read, configuration);
  }
}

TEST(Configuration, LargeEnvironmentsFitTheHeader) {
  Configuration configuration;
  for (int i = 0; i < 5000; ++i) configuration.environment.push_back("NAME" + std::to_string(i) + "=" + std::string(100, 'x'));
  const auto frame = encode_configuration(configuration);
  ASSERT_LE(frame.header.dump().size(), kMaxHeaderBytes);
  const auto read = through_bytes(frame);
  ASSERT_TRUE(read);
  expect_equal(*read, configuration);
}

TEST(Configuration, Refused) {
  const Frame good = encode_configuration(full());
  auto with = [&](const char* key, Json value) {
    Frame frame = good;
    frame.header[key] = std::move(value);
    return frame;
  };
  const std::uint64_t huge = std::numeric_limits<std::uint64_t>::max();
  ASSERT_TRUE(through_bytes(good));
  EXPECT_FALSE(through_bytes(with("op", "exec")));
  EXPECT_FALSE(through_bytes(with("version", kProtocolVersion + 1)));
  EXPECT_FALSE(through_bytes(with("version", "1")));
  EXPECT_FALSE(through_bytes(with("args", Json::array({1, 1, 1}))));
  EXPECT_FALSE(through_bytes(with("args", nullptr)));
  EXPECT_FALSE(through_bytes(with("root_names", 4)));
  EXPECT_FALSE(through_bytes(with("environment", 2)));
  // Counts whose sum wraps around to the right one.
  Frame wrapped = with("root_names", huge);
  wrapped.header["environment"] = 7;
  EXPECT_FALSE(through_bytes(wrapped));
  Frame absent = good;
  absent.header.erase("root_names");
  EXPECT_FALSE(through_bytes(absent));
  Frame cut = good;
  cut.payload.resize(3);
  EXPECT_FALSE(through_bytes(cut));
}

TEST(MergeEnvironment, ChangesReplaceByName) {
  EXPECT_EQ(merge_environment({"A=1", "B=2"}, {"B=3", "C=4"}), (std::vector<std::string>{"A=1", "B=3", "C=4"}));
  EXPECT_EQ(merge_environment({"AB=1"}, {"A=2"}), (std::vector<std::string>{"AB=1", "A=2"}));
  EXPECT_EQ(merge_environment({}, {"A=1", "A=2=3"}), (std::vector<std::string>{"A=2=3"}));
  EXPECT_EQ(merge_environment({"A=1"}, {}), (std::vector<std::string>{"A=1"}));
}

}  // namespace
}  // namespace sandy::wire
