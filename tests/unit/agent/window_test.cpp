#include "agent/window.h"

#include <gtest/gtest.h>

namespace sandy::agent {
namespace {

// How many events of `wanted` bytes fit until take() waits, and how many bytes they hold.
std::pair<std::size_t, std::size_t> fill(asio::io_context& io, Window& window, std::size_t wanted) {
  std::size_t count = 0, bytes = 0;
  asio::co_spawn(
      io,
      [&]() -> asio::awaitable<void> {
        while (const std::size_t n = co_await window.take(wanted)) ++count, bytes += n;
      },
      asio::detached);
  io.restart();
  io.poll();
  const auto out = std::pair(count, bytes);
  window.close();
  io.run();
  return out;
}

TEST(Window, IsTakenInChunks) {
  asio::io_context io;
  Window window(io.get_executor());
  EXPECT_EQ(fill(io, window, 1 << 30), std::pair(wire::kWindowBytes / wire::kChunkBytes, wire::kWindowBytes));
}

TEST(Window, SmallEventsCountAsMore) {
  asio::io_context io;
  Window window(io.get_executor());
  EXPECT_EQ(fill(io, window, 1).first, wire::kWindowBytes / wire::kLeastCharge);
}

TEST(Window, WhatIsGivenBackIsTakenAgainButNoMore) {
  asio::io_context io;
  Window window(io.get_executor());
  window.give(~std::size_t{0});
  EXPECT_EQ(fill(io, window, 1000).first, wire::kWindowBytes / 1000 + 1);
}

}  // namespace
}  // namespace sandy::agent
