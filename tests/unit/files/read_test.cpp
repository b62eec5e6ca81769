#include "agent/files/read.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <chrono>

#include "temp_tree.h"

namespace sandy::files {
namespace {

using Clock = std::chrono::steady_clock;

Code code_of(const FileResult<ReadPage>& page) {
  return page ? Code::cancelled : page.error().code;
}

std::string lines(int count) {
  std::string out;
  for (int i = 1; i <= count; ++i) out += "line " + std::to_string(i) + "\n";
  return out;
}

struct ReadTest : testing::Test {
  TempTree tree;

  FileResult<ReadPage> page(std::string_view content, ReadOptions options = {}) {
    return read(tree.make("f", content), options);
  }
};

TEST_F(ReadTest, LineEndsBecomeLf) {
  auto got = page("a\r\nb\rc\nd\r");
  ASSERT_TRUE(got);
  EXPECT_EQ(got->content, "a\nb\nc\nd");
  EXPECT_FALSE(got->binary);
  ASSERT_TRUE(got->window);
  EXPECT_EQ(got->window->total_lines, 4U);
  EXPECT_EQ(got->window->start_line, 1U);
  EXPECT_EQ(got->window->end_line, 4U);
  EXPECT_EQ(got->window->next_offset, std::nullopt);
}

TEST_F(ReadTest, CrLfSplitOverBufferEdge) {
  // The reader's buffer is 65,536 bytes: put CR at its last place.
  const std::string content = std::string(65'535, 'x') + "\r\nsecond\r\n";
  auto got = page(content);
  ASSERT_TRUE(got);
  EXPECT_EQ(got->content, std::string(65'535, 'x') + "\nsecond");
  EXPECT_EQ(got->window->total_lines, 2U);
}

TEST_F(ReadTest, EmptyFileIsEmptyAlsoWithoutLines) {
  auto got = page("", {0, 0, false});
  ASSERT_TRUE(got);
  EXPECT_TRUE(got->empty);
  EXPECT_FALSE(got->no_lines_requested);
  EXPECT_FALSE(got->window);
}

TEST_F(ReadTest, NoLinesRequested) {
  auto got = page("a\nb\n", {0, 0, false});
  ASSERT_TRUE(got);
  EXPECT_TRUE(got->no_lines_requested);
  EXPECT_EQ(got->content, "");
  EXPECT_FALSE(got->window);
}

TEST_F(ReadTest, PagesOf2001Lines) {
  auto first = page(lines(2001));
  ASSERT_TRUE(first);
  EXPECT_EQ(first->window->end_line, 2000U);
  EXPECT_EQ(first->window->total_lines, 2001U);
  EXPECT_EQ(first->window->next_offset, 2000U);
  auto second = read(tree.at("f"), {2000, 2000, false});
  ASSERT_TRUE(second);
  EXPECT_EQ(second->content, "line 2001");
  EXPECT_EQ(second->window->start_line, 2001U);
  EXPECT_EQ(second->window->end_line, 2001U);
  EXPECT_EQ(second->window->next_offset, std::nullopt);
  EXPECT_EQ(first->content + "\n" + second->content + "\n", lines(2001));
}

TEST_F(ReadTest, ExactlyALimitOfLinesIsTheEnd) {
  auto got = page(lines(2000));
  ASSERT_TRUE(got);
  EXPECT_EQ(got->window->total_lines, 2000U);
  EXPECT_EQ(got->window->next_offset, std::nullopt);
}

TEST_F(ReadTest, OneLineWithoutNewline) {
  auto got = page("only");
  ASSERT_TRUE(got);
  EXPECT_EQ(got->content, "only");
  EXPECT_EQ(got->window->total_lines, 1U);
}

TEST_F(ReadTest, LastLineBySmallLimit) {
  auto got = page(lines(2001), {1999, 1, false});
  ASSERT_TRUE(got);
  EXPECT_EQ(got->content, "line 2000");
  EXPECT_EQ(got->window->start_line, 2000U);
  EXPECT_EQ(got->window->next_offset, 2000U);
}

TEST_F(ReadTest, OffsetPastTheEndNamesBothNumbers) {
  for (const std::uint64_t offset : {5000UL, 2001UL, ~0UL}) {
    auto got = page(lines(2001), {offset, 10, false});
    ASSERT_FALSE(got);
    EXPECT_EQ(got.error().code, Code::offset);
    EXPECT_EQ(got.error().offset, offset);
    EXPECT_EQ(got.error().lines, 2001U);
  }
}

TEST_F(ReadTest, LongLinesPageWithinTheCapAndLoseNothing) {
  std::string content;
  for (int i = 0; i < 20; ++i) content += std::string(100'000, static_cast<char>('a' + i)) + "\n";
  tree.make("f", content);
  std::string joined;
  std::optional<std::uint64_t> offset = 0;
  int pages = 0;
  while (offset) {
    auto got = read(tree.at("f"), {*offset, 2000, false});
    ASSERT_TRUE(got);
    EXPECT_LE(got->content.size() + (got->truncated ? kTruncationReserve : 0), kReadCap);
    // The partial line at the end of a truncated page is read again by the next.
    std::string_view whole = got->content;
    const std::uint64_t count = got->window->end_line - got->window->start_line + 1;
    joined += std::string(whole.substr(0, count * 100'001 - 1)) + "\n";
    if (got->window->next_offset) {
      EXPECT_EQ(*got->window->next_offset, got->window->end_line);
    }
    offset = got->window->next_offset;
    ASSERT_LT(++pages, 10);
  }
  EXPECT_EQ(joined, content);
}

TEST_F(ReadTest, HugeFirstLineIsCutAndPassed) {
  const std::string euros = [] {
    std::string out;
    while (out.size() < 600'000) out += "\xE2\x82\xAC";
    return out;
  }();
  auto got = page(euros + "\nnext\n");
  ASSERT_TRUE(got);
  EXPECT_TRUE(got->truncated);
  EXPECT_EQ(got->repaired, 0U);
  EXPECT_LE(got->content.size(), kReadCap - kTruncationReserve);
  EXPECT_GT(got->content.size(), kReadCap - kTruncationReserve - 3);
  EXPECT_EQ(got->content, euros.substr(0, got->content.size()));
  EXPECT_EQ(got->content.size() % 3, 0U);
  EXPECT_EQ(got->window->end_line, 1U);
  EXPECT_EQ(got->window->total_lines, 2U);
  EXPECT_EQ(got->window->next_offset, 1U);
}

TEST_F(ReadTest, LargeFileHasNoTotalUntilItsEnd) {
  std::string content;
  while (content.size() < 2'000'000) content += "some text in a line\n";
  const std::uint64_t total = content.size() / 20;
  auto got = page(content, {0, 10, false});
  ASSERT_TRUE(got);
  EXPECT_EQ(got->window->total_lines, std::nullopt);
  EXPECT_EQ(got->window->next_offset, 10U);
  got = read(tree.at("f"), {total - 5, 5, false});
  ASSERT_TRUE(got);
  EXPECT_EQ(got->window->total_lines, total);
  EXPECT_EQ(got->window->next_offset, std::nullopt);
}

TEST_F(ReadTest, CharacterCutAtThePrefixEdgeIsText) {
  auto got = page(std::string(8191, 'a') + "\xE2\x82\xAC tail\n");
  ASSERT_TRUE(got);
  EXPECT_FALSE(got->binary);
  EXPECT_EQ(got->content, std::string(8191, 'a') + "\xE2\x82\xAC tail");
}

TEST_F(ReadTest, CharacterCutAtTheEndOfAShortFileIsBinary) {
  auto got = page("ab\xE2\x82");
  ASSERT_TRUE(got);
  EXPECT_TRUE(got->binary);
  EXPECT_EQ(got->content, "ab\xE2\x82");
}

TEST_F(ReadTest, BadByteBehindThePrefixIsRepaired) {
  auto got = page(std::string(9000, 'a') + "\xFF" + "b\n");
  ASSERT_TRUE(got);
  EXPECT_FALSE(got->binary);
  EXPECT_EQ(got->repaired, 1U);
  EXPECT_EQ(got->content, std::string(9000, 'a') + "\xEF\xBF\xBD" + "b");
}

TEST_F(ReadTest, BinaryByContentAndByName) {
  std::string all;
  for (int i = 0; i < 256; ++i) all += static_cast<char>(i);
  auto got = page(all);
  ASSERT_TRUE(got);
  EXPECT_TRUE(got->binary);
  EXPECT_EQ(got->content, all);
  EXPECT_FALSE(got->window);
  got = page("plain\r\n", {0, 0, true});
  ASSERT_TRUE(got);
  EXPECT_TRUE(got->binary);
  EXPECT_EQ(got->content, "plain\r\n");
}

TEST_F(ReadTest, BinaryCap) {
  auto got = page(std::string(kReadCap, '\xFF'));
  ASSERT_TRUE(got);
  EXPECT_EQ(got->content.size(), kReadCap);
  got = page(std::string(kReadCap + 1, '\xFF'));
  EXPECT_EQ(code_of(got), Code::too_large);
}

TEST_F(ReadTest, OnlyRegularFilesAndNoHang) {
  const auto start = Clock::now();
  EXPECT_EQ(code_of(read(tree.fifo("p"), {})), Code::not_a_file);
  EXPECT_EQ(code_of(read(tree.link("z", "/dev/zero"), {})), Code::not_a_file);
  EXPECT_EQ(code_of(read("/dev/tty", {})), Code::not_a_file);
  EXPECT_EQ(code_of(read(tree.root(), {})), Code::not_a_file);
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::snprintf(address.sun_path, sizeof address.sun_path, "%s", tree.at("s").c_str());
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  ASSERT_EQ(::bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  EXPECT_EQ(code_of(read(tree.at("s"), {})), Code::not_a_file);
  ::close(fd);
  EXPECT_LT(Clock::now() - start, std::chrono::seconds(1));
}

TEST_F(ReadTest, SparseFileOf200GigabytesTakesNoTime) {
  const std::string path = tree.make("big", "");
  ASSERT_EQ(::truncate(path.c_str(), 200'000'000'000), 0);
  const auto start = Clock::now();
  auto got = read(path, {});
  ASSERT_TRUE(got);
  EXPECT_TRUE(got->truncated);
  EXPECT_EQ(got->window->next_offset, 1U);
  EXPECT_EQ(code_of(read(path, {1, 10, false})), Code::offset);  // jumps over the hole
  EXPECT_EQ(code_of(read(path, {0, 10, true})), Code::too_large);
  EXPECT_LT(Clock::now() - start, std::chrono::seconds(5));
}

TEST_F(ReadTest, ProcFilesHaveContentAlthoughTheirSizeIsZero) {
  auto got = read("/proc/self/status", {0, 1, false});
  ASSERT_TRUE(got);
  EXPECT_FALSE(got->empty);
  EXPECT_THAT(got->content, testing::StartsWith("Name:"));
  EXPECT_GT(*got->window->total_lines, 10U);
}

TEST_F(ReadTest, Errors) {
  EXPECT_EQ(code_of(read(tree.at("none"), {})), Code::file_not_found);
  tree.make("f", "x");
  EXPECT_EQ(code_of(read(tree.at("f/x"), {})), Code::file_not_found);
  EXPECT_EQ(code_of(read("", {})), Code::invalid_path);
  EXPECT_EQ(code_of(read(std::string("a\0b", 3), {})), Code::invalid_path);
  EXPECT_EQ(code_of(read("/" + std::string(5000, 'x'), {})), Code::invalid_path);
  tree.link("loop", "loop");
  EXPECT_EQ(code_of(read(tree.at("loop"), {})), Code::invalid_path);
  // By the mode bits, also for root.
  EXPECT_EQ(code_of(read(tree.make("locked", "x", 0), {})), Code::permission_denied);
  EXPECT_EQ(unprivileged(
                [&] { return std::string(word(code_of(read(tree.make("own", "x", 0200), {})))); }),
            "permission_denied");
}

TEST_F(ReadTest, Cancel) {
  std::stop_source source;
  source.request_stop();
  EXPECT_EQ(code_of(read(tree.make("f", lines(10)), {5, 1, false}, source.get_token())),
            Code::cancelled);
}

}  // namespace
}  // namespace sandy::files
