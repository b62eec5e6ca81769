#include "agent/kept_output.h"

#include <gtest/gtest.h>

#include <random>

namespace sandy::agent {
namespace {

// By definition, with all of the output at hand.
KeptOutput::Result naive(const std::string& all, std::size_t capacity) {
  if (all.size() <= capacity) return {all, "", 0};
  const std::size_t tail = capacity / 2, head = capacity - tail;
  return {all.substr(0, head), all.substr(all.size() - tail), all.size() - capacity};
}

void expect_kept(std::size_t capacity, const std::vector<std::string>& pieces) {
  KeptOutput kept(capacity);
  std::string all;
  for (const auto& piece : pieces) {
    kept.add(piece);
    all += piece;
  }
  const auto expected = naive(all, capacity), result = kept.take();
  ASSERT_EQ(result.head, expected.head) << capacity << " of " << all.size();
  ASSERT_EQ(result.tail, expected.tail) << capacity << " of " << all.size();
  ASSERT_EQ(result.omitted, expected.omitted) << capacity << " of " << all.size();
}

std::string bytes(std::size_t count, unsigned start) {
  std::string out(count, '\0');
  for (std::size_t i = 0; i < count; ++i) out[i] = static_cast<char>((start + i) % 251);
  return out;
}

TEST(KeptOutput, EverySmallSizeInOnePieceAndByteByByte) {
  for (std::size_t capacity = 0; capacity <= 12; ++capacity) {
    for (std::size_t size = 0; size <= 40; ++size) {
      const std::string all = bytes(size, 1);
      expect_kept(capacity, {all});
      std::vector<std::string> single;
      for (const char byte : all) single.emplace_back(1, byte);
      expect_kept(capacity, single);
      if (::testing::Test::HasFatalFailure()) return;
    }
  }
}

TEST(KeptOutput, RandomPieces) {
  std::mt19937 random(7);
  for (int round = 0; round < 3000; ++round) {
    const std::size_t capacity = random() % 300;
    std::vector<std::string> pieces;
    unsigned at = 0;
    for (unsigned i = random() % 20; i > 0; --i) {
      const std::size_t size = random() % (random() % 4 == 0 ? 400 : 30);
      pieces.push_back(bytes(size, at));
      at += static_cast<unsigned>(size);
    }
    expect_kept(capacity, pieces);
    if (::testing::Test::HasFatalFailure()) return;
  }
}

TEST(KeptOutput, AroundTheCapacityOfADefaultCommand) {
  const std::size_t capacity = 1'048'576;
  for (const std::size_t size : {capacity - 1, capacity, capacity + 1, 3 * capacity}) {
    std::vector<std::string> pieces;
    for (std::size_t done = 0; done < size;) {
      const std::size_t piece = std::min<std::size_t>(65'536, size - done);
      pieces.push_back(bytes(piece, static_cast<unsigned>(done)));
      done += piece;
    }
    expect_kept(capacity, pieces);
  }
}

}  // namespace
}  // namespace sandy::agent
