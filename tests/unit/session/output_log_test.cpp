#include "session/output_log.h"

#include <gtest/gtest.h>

#include <string>

namespace sandy::session {
namespace {

std::string text_from(const OutputLog& log, std::uint64_t offset) {
  std::string out;
  while (offset < log.end()) {
    const auto piece = log.at(offset, 7);
    out += piece.bytes;
    offset += piece.bytes.size();
  }
  return out;
}

TEST(OutputLog, GivesWhatWasAppendedFromAnyOffset) {
  OutputLog log(1'000);
  log.append(OutputStream::out, "abc");
  log.append(OutputStream::err, "def");
  log.append(OutputStream::err, "ghi");
  log.append(OutputStream::out, "");
  EXPECT_EQ(log.begin(), 0U);
  EXPECT_EQ(log.end(), 9U);
  for (std::uint64_t offset = 0; offset < 9; ++offset) EXPECT_EQ(text_from(log, offset), std::string("abcdefghi").substr(offset)) << offset;
  EXPECT_EQ(log.at(1, 100).bytes, "bc");
  EXPECT_EQ(log.at(1, 100).stream, OutputStream::out);
  EXPECT_EQ(log.at(3, 100).bytes, "defghi");
  EXPECT_EQ(log.at(3, 100).stream, OutputStream::err);
  EXPECT_EQ(log.at(4, 2).bytes, "ef");
}

TEST(OutputLog, KeepsTheLastBytesAndWhatIsNeeded) {
  OutputLog log(4);
  std::string all;
  for (int i = 0; i < 100; ++i) {
    const std::string piece(static_cast<std::size_t>(i % 5), static_cast<char>('a' + i % 26));
    log.append(i % 3 == 0 ? OutputStream::out : OutputStream::err, piece);
    all += piece;
    log.trim(UINT64_MAX);
    EXPECT_EQ(log.end() - log.begin(), std::min<std::size_t>(4, all.size()));
    EXPECT_EQ(text_from(log, log.begin()), all.substr(all.size() - std::min<std::size_t>(4, all.size())));
  }
  const auto needed = log.end();
  log.append(OutputStream::out, std::string(1'000, 'x'));
  log.trim(needed);
  EXPECT_EQ(log.begin(), needed);
  EXPECT_EQ(text_from(log, log.begin()), std::string(1'000, 'x'));
  log.trim(UINT64_MAX);
  EXPECT_EQ(log.begin(), log.end() - 4);
}

// Each change of the stream costs memory too.
TEST(OutputLog, OutputsThatAlternateAreBoundedAsWell) {
  OutputLog log(64'000'000);
  for (int i = 0; i < 3'000'000; ++i) {
    log.append(i % 2 == 0 ? OutputStream::out : OutputStream::err, "x");
    log.trim(UINT64_MAX);
  }
  EXPECT_EQ(log.end(), 3'000'000U);
  EXPECT_EQ(log.end() - log.begin(), 1'024U + 1'000'000U);
  EXPECT_EQ(log.at(log.begin(), 5).bytes, "x");
}

TEST(OutputLog, WithoutALimitsRoomNothingIsKept) {
  OutputLog log(0);
  log.append(OutputStream::out, "abc");
  EXPECT_EQ(text_from(log, 0), "abc");
  log.trim(1);
  EXPECT_EQ(text_from(log, 1), "bc");
  log.trim(UINT64_MAX);
  log.seal();
  EXPECT_EQ(log.begin(), log.end());
  log.append(OutputStream::out, "d");
  EXPECT_EQ(text_from(log, 3), "d");
}

}  // namespace
}  // namespace sandy::session
