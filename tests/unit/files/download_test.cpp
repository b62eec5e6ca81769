#include "agent/files/download.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "temp_tree.h"

namespace sandy::files {
namespace {

struct Got {
  std::string bytes;
  std::string error;
};

Got get(const std::string& path, std::optional<std::uint64_t> max = std::nullopt) {
  Got got;
  auto count = download(path, max, [&](std::string_view chunk) {
    EXPECT_LE(chunk.size(), kMaxChunk);
    got.bytes += chunk;
    return true;
  });
  if (!count) {
    got.error = word(count.error().code);
  } else {
    EXPECT_EQ(*count, got.bytes.size());
  }
  return got;
}

TEST(Download, BytesAreExact) {
  TempTree tree;
  std::string all;
  for (int i = 0; i < 256'000; ++i) all += static_cast<char>(i);
  const std::string sizes[] = {"",
                               "x",
                               std::string(4095, 'a'),
                               std::string(4096, 'b'),
                               std::string(kMaxChunk, 'c'),
                               std::string(10'000'000, 'd'),
                               all};
  for (const std::string& content : sizes) {
    const Got got = get(tree.make("f", content));
    EXPECT_EQ(got.error, "");
    EXPECT_EQ(got.bytes, content);
  }
  EXPECT_NE(get("/proc/self/status").bytes, "");
}

TEST(Download, MaxBytesIsExact) {
  TempTree tree;
  const std::string path = tree.make("f", "12345");
  EXPECT_EQ(get(path, 5).bytes, "12345");
  EXPECT_EQ(get(path, 4).error, "too_large");
  EXPECT_EQ(get(path, 4).bytes, "");
  EXPECT_EQ(get(tree.make("empty", ""), 0).error, "");
  EXPECT_EQ(get("/proc/self/status", 10).error, "too_large");
  tree.make("big", "");
  ASSERT_EQ(::truncate(tree.at("big").c_str(), 200'000'000'000), 0);
  const auto error = download(tree.at("big"), 1000, [](std::string_view) { return true; }).error();
  EXPECT_THAT(error.detail, testing::HasSubstr("1000"));
}

TEST(Download, Errors) {
  TempTree tree;
  tree.make("f", "x");
  EXPECT_EQ(get(tree.at("none")).error, "file_not_found");
  EXPECT_EQ(get(tree.at("f/x")).error, "file_not_found");
  EXPECT_EQ(get(tree.root()).error, "is_directory");
  EXPECT_EQ(get(tree.fifo("p")).error, "not_a_file");
  EXPECT_EQ(get(tree.link("z", "/dev/zero")).error, "not_a_file");
  EXPECT_EQ(get("/dev/random").error, "not_a_file");
  EXPECT_EQ(get("").error, "invalid_path");
  EXPECT_EQ(get(tree.make("locked", "x", 0)).error, "permission_denied");
}

TEST(Download, Cancel) {
  TempTree tree;
  const std::string path = tree.make("f", std::string(1'000'000, 'x'));
  int calls = 0;
  EXPECT_EQ(
      download(path, std::nullopt, [&](std::string_view) { return ++calls < 2; }).error().code,
      Code::cancelled);
  EXPECT_EQ(calls, 2);
  std::stop_source source;
  source.request_stop();
  EXPECT_EQ(download(
                path, std::nullopt, [](std::string_view) { return true; }, source.get_token())
                .error()
                .code,
            Code::cancelled);
}

}  // namespace
}  // namespace sandy::files
