#include "proxy/http_stream.h"

#include <sys/socket.h>

#include <cerrno>

namespace sandy::proxy {
namespace {

constexpr auto kNoError = asio::as_tuple(asio::use_awaitable);
// Of a client that goes on sending: what is closed with something unread is reset, and the answer may be lost with that. For as long as the time limit lets it.
constexpr std::size_t kMaxLinger = 64 << 20;

}  // namespace

HttpStream::HttpStream(tcp::socket& socket, std::string received) : socket_(socket), bytes_(std::move(received)), received_(bytes_.size()) {
  boost::system::error_code ignored;
  const tcp::no_delay now(true);  // what is written here is all that there is to write
  socket_.set_option(now, ignored);
}

asio::awaitable<HttpStream::Fill> HttpStream::fill() {
  while (!stopped_) {
    const auto have = bytes_.size();
    ssize_t n = -1;
    bytes_.resize_and_overwrite(have + kReadBytes, [&](char* data, std::size_t) {
      n = ::recv(socket_.native_handle(), data + have, kReadBytes, MSG_DONTWAIT);
      return have + (n > 0 ? static_cast<std::size_t>(n) : 0);
    });
    if (n > 0) {
      received_ += static_cast<std::uint64_t>(n);
      co_return Fill::data;
    }
    const int error = errno;
    if (have == 0) std::string().swap(bytes_);
    if (n == 0) co_return Fill::end;
    if (error == EINTR) continue;
    if (error != EAGAIN && error != EWOULDBLOCK) co_return Fill::failed;
    const auto [failure] = co_await socket_.async_wait(tcp::socket::wait_read, kNoError);
    if (failure) co_return Fill::failed;
  }
  co_return Fill::failed;
}

asio::awaitable<bool> HttpStream::write(std::string_view bytes) {
  while (!bytes.empty()) {
    if (stopped_) co_return false;
    const auto [failure, written] = co_await socket_.async_write_some(asio::buffer(bytes), kNoError);
    if (failure) co_return false;
    bytes.remove_prefix(written);
    sent_ += written;
  }
  co_return true;
}

void HttpStream::stop() {
  stopped_ = true;
  boost::system::error_code ignored;
  socket_.cancel(ignored);
}

bool HttpStream::quiet() const {
  char byte = 0;
  return bytes_.empty() && ::recv(socket_.native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
}

asio::awaitable<void> HttpStream::close_lingering(std::chrono::milliseconds limit) {
  resume();
  boost::system::error_code error;
  socket_.shutdown(tcp::socket::shutdown_send, error);
  if (!error) {
    const auto expire = [this] { stop(); };
    const Watchdog watchdog(socket_.get_executor(), limit, expire);
    for (std::size_t drained = 0; drained < kMaxLinger; drained += bytes_.size()) {
      bytes_.clear();
      const auto filled = co_await fill();
      if (filled != Fill::data) break;
    }
  }
  close();
}

void HttpStream::close_abruptly() {
  boost::system::error_code ignored;
  const asio::socket_base::linger none(true, 0);
  socket_.set_option(none, ignored);
  close();
}

void HttpStream::close() {
  boost::system::error_code ignored;
  socket_.close(ignored);
}

struct Watchdog::State {
  State(const asio::any_io_executor& executor, std::chrono::milliseconds limit_, std::function<void()> expire_)
      : timer(executor), limit(limit_), expire(std::move(expire_)) {}

  asio::steady_timer timer;
  std::chrono::milliseconds limit;
  std::function<void()> expire;
  std::chrono::steady_clock::time_point touched = std::chrono::steady_clock::now();
  bool watching = true, expired = false;
};

Watchdog::Watchdog(const asio::any_io_executor& executor, std::chrono::milliseconds limit, std::function<void()> expire)
    : state_(std::make_shared<State>(executor, limit, std::move(expire))) {
  wait(state_);
}

Watchdog::~Watchdog() {
  state_->watching = false;
  state_->timer.cancel();
}

// A touch only writes down the time: the timer looks when it has run out.
void Watchdog::wait(const std::shared_ptr<State>& state) {
  state->timer.expires_at(state->touched + state->limit);
  state->timer.async_wait([state](const boost::system::error_code&) {
    if (!state->watching) return;
    if (std::chrono::steady_clock::now() < state->touched + state->limit) {
      wait(state);
      return;
    }
    state->expired = true;
    state->expire();
  });
}

void Watchdog::touch() { state_->touched = std::chrono::steady_clock::now(); }

bool Watchdog::expired() const { return state_->expired; }

}  // namespace sandy::proxy
