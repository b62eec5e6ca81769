// Passes bytes on in both directions, as they come.
#pragma once

#include <boost/asio.hpp>
#include <cstdint>
#include <string>

namespace sandy::proxy {

namespace asio = boost::asio;
using tcp = asio::ip::tcp;

// One direction. What was read and not yet written is kept here, so that a pump that is cancelled can go on.
struct Stream {
  std::string pending;
  bool ended = false;       // the source has no more, and the target was told
  bool stopped = false;     // the other direction is lost
  std::uint64_t bytes = 0;  // written
};

// Until the source's end, then shuts down the target's sending side and returns true; false where either fails. Memory is
// taken only while the target is slower than the source. Cancelling it loses nothing.
asio::awaitable<bool> pump(tcp::socket& from, tcp::socket& to, Stream& stream);

// Both directions, until both have ended: true. False: one has failed, or nothing has moved for `idle`. Closes neither socket.
asio::awaitable<bool> relay(tcp::socket& client, tcp::socket& server, Stream& up, Stream& down, std::chrono::seconds idle);

// Closes so that the peer sees a reset: what it was sent is not to be taken for all.
void reset(tcp::socket& socket);

}  // namespace sandy::proxy
