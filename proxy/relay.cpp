#include "proxy/relay.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <exception>

namespace sandy::proxy {
namespace {

constexpr auto kNoError = asio::as_tuple(asio::use_awaitable);
constexpr std::size_t kReadBytes = 65'536;  // and so what a slow reader makes us keep
constexpr int kTurns = 16;  // reads in a row before others have theirs

// One buffer for all connections: between a read and the write that follows nothing else runs.
std::array<char, kReadBytes>& shared_buffer() {
  static std::array<char, kReadBytes> buffer;
  return buffer;
}

constexpr std::size_t kPipeBytes = 1 << 20;         // asked for at a time; a pipe has 16 pages or more
constexpr std::uint64_t kSpliceAfter = 256 * 1'024;
constexpr int kMaxPipes = 512;
int open_pipes = 0;

enum class Moved { some, nothing, end, failed, target_full };

// What is left of `pending`. False: the target failed.
bool write_pending(int to, Stream& stream) {
  std::size_t done = 0;
  while (done < stream.pending.size()) {
    const ssize_t n = ::send(to, stream.pending.data() + done, stream.pending.size() - done, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) break;
    if (n < 0) return false;
    done += static_cast<std::size_t>(n);
  }
  stream.bytes += done;
  stream.pending.erase(0, done);
  if (stream.pending.empty()) stream.pending.shrink_to_fit();
  return true;
}

// What is in the pipe goes first. False: the target failed.
bool write_from_pipe(int to, Stream& stream) {
  while (stream.in_pipe > 0) {
    const ssize_t n = ::splice(stream.pipe.read_end(), nullptr, to, nullptr, stream.in_pipe, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return true;
    if (n <= 0) return false;
    stream.in_pipe -= static_cast<std::size_t>(n);
    stream.bytes += static_cast<std::uint64_t>(n);
  }
  return true;
}

Moved splice_once(int from, int to, Stream& stream) {
  if (stream.in_pipe == 0) {
    const ssize_t n = ::splice(from, nullptr, stream.pipe.write_end(), nullptr, kPipeBytes, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
    if (n == 0) return Moved::end;
    if (n < 0) return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR ? Moved::nothing : Moved::failed;
    stream.in_pipe = static_cast<std::size_t>(n);
  }
  if (!write_from_pipe(to, stream)) return Moved::failed;
  return stream.in_pipe == 0 ? Moved::some : Moved::target_full;
}

Moved move_once(int from, int to, Stream& stream) {
  if (stream.pipe) return splice_once(from, to, stream);
  if (!stream.pending.empty()) {
    if (!write_pending(to, stream)) return Moved::failed;
    return stream.pending.empty() ? Moved::some : Moved::target_full;
  }
  auto& buffer = shared_buffer();
  const ssize_t n = ::recv(from, buffer.data(), buffer.size(), MSG_DONTWAIT);
  if (n == 0) return Moved::end;
  if (n < 0) return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR ? Moved::nothing : Moved::failed;
  auto left = static_cast<std::size_t>(n);
  const char* data = buffer.data();
  while (left > 0) {
    const ssize_t sent = ::send(to, data, left, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && errno != EAGAIN && errno != EWOULDBLOCK) return Moved::failed;
    if (sent < 0) break;
    data += sent;
    left -= static_cast<std::size_t>(sent);
    stream.bytes += static_cast<std::uint64_t>(sent);
  }
  stream.pending.assign(data, left);
  // It is more than a short exchange: from here on nothing is copied.
  if (left == 0 && stream.bytes > kSpliceAfter) stream.pipe.open();
  return left == 0 ? Moved::some : Moved::target_full;
}

// Two pumps that run at the same time, and whoever waits for both.
struct Pair {
  explicit Pair(const asio::any_io_executor& executor) : changed(executor) {}
  asio::steady_timer changed;
  int running = 0;
  bool failed = false;
};

void stop(tcp::socket& client, tcp::socket& server, Stream& up, Stream& down) {
  up.stopped = down.stopped = true;
  boost::system::error_code ignored;
  client.cancel(ignored);
  server.cancel(ignored);
}

}  // namespace

bool Pipe::open() {
  int fds[2];
  if (open_pipes >= kMaxPipes || ::pipe2(fds, O_CLOEXEC | O_NONBLOCK) != 0) return false;
  ++open_pipes;
  read_end_.reset(fds[0]);
  write_end_.reset(fds[1]);
  // Where it is not given that much, it has its 64 KiB.
  ::fcntl(fds[0], F_SETPIPE_SZ, static_cast<int>(kPipeBytes));
  return true;
}

void Pipe::close() {
  if (read_end_) --open_pipes;
  read_end_.reset();
  write_end_.reset();
}

asio::awaitable<bool> pump(tcp::socket& from, tcp::socket& to, Stream& stream) {
  if (stream.ended) co_return true;
  // splice(2) waits for a socket that isn't, whatever its own flag says, and all others would wait with it.
  boost::system::error_code failed;
  from.native_non_blocking(true, failed);
  if (!failed) to.native_non_blocking(true, failed);
  if (failed) co_return false;
  int turns = 0;
  while (!stream.stopped && from.is_open() && to.is_open()) {
    const Moved moved = move_once(from.native_handle(), to.native_handle(), stream);
    if (moved == Moved::failed) co_return false;
    if (moved == Moved::end) {
      boost::system::error_code ignored;
      stream.ended = true;
      to.shutdown(tcp::socket::shutdown_send, ignored);
      co_return true;
    }
    if (moved == Moved::some) {
      if (++turns % kTurns == 0) co_await asio::post(from.get_executor(), asio::use_awaitable);
      continue;
    }
    tcp::socket& awaited = moved == Moved::nothing ? from : to;
    const auto what = moved == Moved::nothing ? tcp::socket::wait_read : tcp::socket::wait_write;
    const auto [error] = co_await awaited.async_wait(what, kNoError);
    if (error) co_return false;
  }
  co_return false;
}

asio::awaitable<bool> relay(tcp::socket& client, tcp::socket& server, Stream& up, Stream& down, std::chrono::seconds idle) {
  Pair pair(client.get_executor());
  // What one direction has lost, the other need not wait for.
  const auto on_end = [&](const std::exception_ptr& exception, bool ended) {
    if (exception || !ended) {
      pair.failed = true;
      stop(client, server, up, down);
    }
    --pair.running;
    pair.changed.cancel();
  };
  pair.running = 2;
  asio::co_spawn(client.get_executor(), pump(client, server, up), on_end);
  asio::co_spawn(client.get_executor(), pump(server, client, down), on_end);
  std::uint64_t before = 0;
  while (pair.running > 0) {
    before = up.bytes + down.bytes;
    pair.changed.expires_after(idle);
    const auto [error] = co_await pair.changed.async_wait(kNoError);
    if (!error && up.bytes + down.bytes == before) {
      pair.failed = true;
      stop(client, server, up, down);
    }
  }
  co_return !pair.failed;
}

void reset(tcp::socket& socket) {
  boost::system::error_code ignored;
  if (!socket.is_open()) return;
  socket.set_option(asio::socket_base::linger(true, 0), ignored);
  socket.close(ignored);
}

}  // namespace sandy::proxy
