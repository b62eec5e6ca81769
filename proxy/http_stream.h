// A TCP connection as HTTP reads and writes it: with the bytes that were read and not yet used, and with a stop. And a watch over time.
// All of a connection's work is on one thread, or one strand.
#pragma once

#include <boost/asio.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace sandy::proxy {

namespace asio = boost::asio;
using tcp = asio::ip::tcp;

class HttpStream {
 public:
  enum class Fill { data, end, failed };
  static constexpr std::size_t kReadBytes = 16'384;

  // The socket is its owner's and outlives this. `received`: bytes that were read from it already.
  HttpStream(tcp::socket& socket, std::string received);

  // At least one more byte, at most kReadBytes. While there is none to be had, an empty buffer takes no memory.
  asio::awaitable<Fill> fill();
  std::string_view bytes() const { return bytes_; }
  void consume(std::size_t size) { bytes_.erase(0, size); }
  std::string take() { return std::exchange(bytes_, {}); }

  // All of it, or false.
  asio::awaitable<bool> write(std::string_view bytes);

  // What waits in fill() and write() fails, and so do later calls until resume(). A mere cancel() misses what has ended and not yet been told so.
  void stop();
  void resume() { stopped_ = false; }

  // Whether nothing has come that was not used, nor an end: a server between two requests.
  bool quiet() const;

  // Tells the peer that no more comes, and reads what it still sends for a while: closing with bytes unread would be a reset, which can cost the peer what
  // it was sent last (RFC 9112, section 9.6).
  asio::awaitable<void> close_lingering(std::chrono::milliseconds limit);
  // So that the peer sees that what it got isn't all.
  void close_abruptly();
  void close();

  tcp::socket& socket() { return socket_; }

  // Bytes in all.
  std::uint64_t sent() const { return sent_; }
  std::uint64_t received() const { return received_; }

 private:
  tcp::socket& socket_;
  std::string bytes_;
  std::uint64_t sent_ = 0, received_ = 0;
  bool stopped_ = false;
};

// Calls `expire` once `limit` has passed without a touch(). Never after its end.
class Watchdog {
 public:
  Watchdog(const asio::any_io_executor& executor, std::chrono::milliseconds limit, std::function<void()> expire);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  void touch();
  bool expired() const;

 private:
  struct State;
  static void wait(const std::shared_ptr<State>& state);

  std::shared_ptr<State> state_;  // also the timer's handler's, which may come late
};

}  // namespace sandy::proxy
