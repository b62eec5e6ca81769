// One end of a connection that speaks frames: a stream socket in an Asio loop.
#pragma once

#include <boost/asio.hpp>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/unique_fd.h"
#include "session/wire/frame.h"

namespace sandy::wire {

namespace asio = boost::asio;

// Not thread-safe: use it from its executor only. One coroutine reads; any number send. It is shared because queued
// output is written by a coroutine of its own, which may outlive the owner's interest.
class Channel : public std::enable_shared_from_this<Channel> {
 public:
  // `max_payload`: the largest payload this end accepts.
  static std::shared_ptr<Channel> make(asio::any_io_executor executor, UniqueFd socket, std::size_t max_payload) {
    return std::shared_ptr<Channel>(new Channel(std::move(executor), std::move(socket), max_payload));
  }

  // The next frame. An error when the peer closed ("closed"), broke a rule, or the socket failed.
  // Descriptors that came with the frame's bytes, or with others that were read with them, are in take_fds().
  asio::awaitable<Result<Frame>> read();

  // Sends a frame, after those sent before it. Returns when the kernel took all of it; false if the connection is
  // broken. A payload over `kMaxReplyPayload` is the caller's fault unless the peer is known to accept it.
  asio::awaitable<bool> send(Json header, std::string payload = {});

  // As send(), without waiting: tries at once, and queues what the kernel doesn't take. For small frames.
  void post(const Json& header, std::string_view payload = {});

  // As post(), with at most four descriptors that go along with the frame's first byte (SCM_RIGHTS), and are closed here then. `fds` in the header says how many.
  void post_with(const Json& header, std::string_view payload, std::vector<UniqueFd> fds);

  // Several frames in one system call, then as post(). Each is head and payload.
  void post_all(std::vector<std::pair<Json, std::string>> frames);

  std::vector<UniqueFd> take_fds() { return std::exchange(fds_, {}); }
  // The first `count`, of a peer whose frames say how many are theirs: they come in the frames' order. Fewer, if fewer came.
  std::vector<UniqueFd> take_fds(std::size_t count);
  // How many are kept until they are taken; what comes beyond is closed.
  void keep_fds(std::size_t most) { max_fds_ = most; }
  void close();
  // Whether the peer has closed its end and nothing of it is left to read; for whoever doesn't read just now.
  bool peer_closed();
  bool is_open() const { return socket_.is_open(); }
  std::size_t queued_bytes() const { return queued_; }     // sent, and not yet taken by the kernel
  std::size_t buffered_bytes() const { return input_.size(); }  // received, and not yet given to read()

 private:
  Channel(asio::any_io_executor executor, UniqueFd socket, std::size_t max_payload);
  // What waits to be written. Descriptors go with the first byte.
  struct Output {
    std::string bytes;
    std::vector<UniqueFd> fds;
  };
  void enqueue(Output output);
  void start_writing(bool was_empty);
  ssize_t write_some();          // as sendmsg(2)
  asio::awaitable<bool> fill();  // at least one more byte into input_
  asio::awaitable<bool> fill(std::string& out, std::size_t most);  // at least one more byte, at most so many
  ssize_t receive(char* to, std::size_t size);                     // as recvmsg(2)
  void flush();                  // writes what the kernel takes
  asio::awaitable<void> drain(std::shared_ptr<Channel> self);  // writes the queue as the socket takes it

  asio::posix::stream_descriptor socket_;
  asio::steady_timer drained_;  // wakes senders that wait for the queue
  std::size_t max_payload_;
  std::string input_;
  std::size_t input_start_ = 0;
  std::deque<Output> output_;
  std::size_t output_offset_ = 0;  // of output_.front().bytes, already written
  std::size_t queued_ = 0;
  bool draining_ = false;
  bool broken_ = false;
  std::vector<UniqueFd> fds_;
  std::size_t max_fds_ = 4;
};

}  // namespace sandy::wire
