// Notices that a process has had nothing to do for a while, and gives its code pages back then.
#pragma once

#include <boost/asio.hpp>
#include <chrono>
#include <memory>

#include "base/own_pages.h"

namespace sandy::wire {

namespace asio = boost::asio;

class Quiet : public std::enable_shared_from_this<Quiet> {
 public:
  static constexpr auto kAfter = std::chrono::seconds(5);

  explicit Quiet(asio::any_io_executor executor) : timer_(std::move(executor)) {}

  // There was something to do.
  void note() {
    last_ = std::chrono::steady_clock::now();
    if (waiting_) return;
    waiting_ = true;
    asio::co_spawn(timer_.get_executor(), wait(shared_from_this()), asio::detached);
  }

 private:
  asio::awaitable<void> wait(std::shared_ptr<Quiet> self) {
    while (std::chrono::steady_clock::now() < last_ + kAfter) {
      timer_.expires_at(last_ + kAfter);
      const auto [error] = co_await timer_.async_wait(asio::as_tuple(asio::use_awaitable));
      if (error) co_return;
    }
    release_code_pages();
    self->waiting_ = false;
  }

  asio::steady_timer timer_;
  std::chrono::steady_clock::time_point last_;
  bool waiting_ = false;
};

}  // namespace sandy::wire
