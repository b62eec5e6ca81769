#include "verify/canary_listener.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <cstddef>
#include <cstring>

namespace sandy::verify {
namespace {

constexpr int kFlags = SOCK_NONBLOCK | SOCK_CLOEXEC;
constexpr int kWaiting = 16;

std::string text_of(const sockaddr_storage& address) {
  char text[INET6_ADDRSTRLEN] = "";
  if (address.ss_family == AF_INET) ::inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in&>(address).sin_addr, text, sizeof text);
  if (address.ss_family == AF_INET6) ::inet_ntop(AF_INET6, &reinterpret_cast<const sockaddr_in6&>(address).sin6_addr, text, sizeof text);
  return text;
}

}  // namespace

// What this machine sends to an address of its own has that address as its source.
bool CanaryListener::is_from_here(const sockaddr_storage& from) const {
  return (from.ss_family != AF_INET && from.ss_family != AF_INET6) || text_of(from) == address_;
}

Result<CanaryListener> CanaryListener::internet(const std::string& address, int type) {
  sockaddr_storage storage{};
  auto* const v4 = reinterpret_cast<sockaddr_in*>(&storage);
  auto* const v6 = reinterpret_cast<sockaddr_in6*>(&storage);
  socklen_t length = 0;
  if (::inet_pton(AF_INET, address.c_str(), &v4->sin_addr) == 1) {
    v4->sin_family = AF_INET;
    length = sizeof *v4;
  } else if (::inet_pton(AF_INET6, address.c_str(), &v6->sin6_addr) == 1) {
    v6->sin6_family = AF_INET6;
    length = sizeof *v6;
  } else {
    return fail(address, "is no address");
  }
  CanaryListener out;
  out.address_ = address;
  out.connections_ = type == SOCK_STREAM;
  out.fd_ = UniqueFd(::socket(storage.ss_family, type | kFlags, 0));
  if (!out.fd_ || ::bind(out.fd_.get(), reinterpret_cast<sockaddr*>(&storage), length) != 0 || (out.connections_ && ::listen(out.fd_.get(), kWaiting) != 0) ||
      ::getsockname(out.fd_.get(), reinterpret_cast<sockaddr*>(&storage), &length) != 0) {
    return fail(address, "no server can listen there: " + errno_text(errno));
  }
  out.port_ = ntohs(storage.ss_family == AF_INET ? v4->sin_port : v6->sin6_port);
  return out;
}

Result<CanaryListener> CanaryListener::tcp(const std::string& address) { return internet(address, SOCK_STREAM); }
Result<CanaryListener> CanaryListener::udp(const std::string& address) { return internet(address, SOCK_DGRAM); }

Result<CanaryListener> CanaryListener::unix_socket(const std::string& address, int type) {
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  if (address.size() >= sizeof name.sun_path) return fail(printable(address), "is longer than a socket's name can be");
  std::memcpy(name.sun_path, address.data(), address.size());
  socklen_t length = sizeof name;
  if (address.starts_with('@')) {
    name.sun_path[0] = '\0';
    length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + address.size());
  }
  CanaryListener out;
  out.address_ = address;
  out.connections_ = type == SOCK_STREAM;
  out.fd_ = UniqueFd(::socket(AF_UNIX, type | kFlags, 0));
  if (!out.fd_ || ::bind(out.fd_.get(), reinterpret_cast<sockaddr*>(&name), length) != 0 || (out.connections_ && ::listen(out.fd_.get(), kWaiting) != 0)) {
    return fail(printable(address), "no socket can be made there: " + errno_text(errno));
  }
  return out;
}

bool CanaryListener::visited() {
  bool any = false;
  while (true) {
    char buffer[64];
    sockaddr_storage from{};
    socklen_t length = sizeof from;
    auto* const address = reinterpret_cast<sockaddr*>(&from);
    const ssize_t got = connections_ ? UniqueFd(::accept4(fd_.get(), address, &length, kFlags)).get()
                                     : ::recvfrom(fd_.get(), buffer, sizeof buffer, 0, address, &length);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return any;
    any = any || is_from_here(from);
  }
}

}  // namespace sandy::verify
