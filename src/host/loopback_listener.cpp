#include "host/loopback_listener.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>

namespace sandy::host {

Result<LoopbackListener> listen_on_loopback(std::uint16_t port) {
  constexpr int kBacklog = 128;
  const std::string what = "network.publish: port " + std::to_string(port) + " of this machine";
  LoopbackListener out;
  out.socket.reset(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int on = 1;
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  // The port of a sandbox that has just ended can be had again.
  if (!out.socket || ::setsockopt(out.socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
      ::bind(out.socket.get(), reinterpret_cast<sockaddr*>(&address), size) != 0 || ::listen(out.socket.get(), kBacklog) != 0 ||
      ::getsockname(out.socket.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    const int error = errno;
    const char* const fix = error == EACCES       ? "take a port from 1024 on, or leave it out for a free one"
                            : error == EADDRINUSE ? "something listens there: take another one, or leave it out for a free one"
                                                  : "";
    return fail(what, errno_text(error), fix);
  }
  out.port = ntohs(address.sin_port);
  return out;
}

}  // namespace sandy::host
