// Flow control of one request's output: PROTOCOL.md, "Flow control".
#pragma once

#include <boost/asio.hpp>
#include <cstddef>

#include "session/wire/frame.h"

namespace sandy::agent {

namespace asio = boost::asio;

class Window {
 public:
  explicit Window(asio::any_io_executor executor) : opened_(executor, asio::steady_timer::time_point::max()) {}

  // Waits until something may be sent, and takes up to `wanted` bytes of it for one event. 0 after close().
  asio::awaitable<std::size_t> take(std::size_t wanted) {
    while (left_ < wire::kLeastCharge && !closed_) co_await opened_.async_wait(asio::as_tuple(asio::use_awaitable));
    if (closed_) co_return 0;
    const std::size_t taken = std::min({wanted, left_, wire::kChunkBytes});
    left_ -= wire::stream_charge(taken);
    co_return taken;
  }

  // The receiver gives back at most what it was sent: more is a fault of its, and changes nothing.
  void give(std::size_t bytes) {
    left_ = std::min(wire::kWindowBytes, left_ + std::min(bytes, wire::kWindowBytes));
    opened_.cancel();
  }

  void close() {
    closed_ = true;
    opened_.cancel();
  }

 private:
  asio::steady_timer opened_;
  std::size_t left_ = wire::kWindowBytes;
  bool closed_ = false;
};

}  // namespace sandy::agent
