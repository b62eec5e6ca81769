// Passes bytes on in both directions, as they come.
#pragma once

#include <boost/asio.hpp>
#include <cstdint>
#include <string>

#include "base/unique_fd.h"

namespace sandy::proxy {

namespace asio = boost::asio;
using tcp = asio::ip::tcp;

// A pipe through which the kernel moves bytes from socket to socket without copying them (splice(2)). There is a limited number of them.
class Pipe {
 public:
  Pipe() = default;
  ~Pipe() { close(); }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  // False: there are too many already.
  bool open();
  void close();
  explicit operator bool() const { return static_cast<bool>(read_end_); }
  int read_end() const { return read_end_.get(); }
  int write_end() const { return write_end_.get(); }

 private:
  UniqueFd read_end_, write_end_;
};

// One direction. What was read and not yet written is kept here, so that a pump that is cancelled can go on.
struct Stream {
  std::string pending;
  bool ended = false;       // the source has no more, and the target was told
  bool stopped = false;     // the other direction is lost
  std::uint64_t bytes = 0;  // written
  Pipe pipe;                // once much has gone through
  std::size_t in_pipe = 0;
};

// Until the source's end, then shuts down the target's sending side and returns true; false where either fails. Memory is
// taken only while the target is slower than the source. Cancelling it loses nothing.
asio::awaitable<bool> pump(tcp::socket& from, tcp::socket& to, Stream& stream);

// Both directions, until both have ended: true. False: one has failed, or nothing has moved for `idle`. Closes neither socket.
asio::awaitable<bool> relay(tcp::socket& client, tcp::socket& server, Stream& up, Stream& down, std::chrono::seconds idle);

// Closes so that the peer sees a reset: what it was sent is not to be taken for all.
void reset(tcp::socket& socket);

}  // namespace sandy::proxy
