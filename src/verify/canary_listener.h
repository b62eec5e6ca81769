// A socket of the host's that only counts who came: connections wait in it, datagrams too, until they are asked for.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <string>

#include "base/error.h"
#include "base/unique_fd.h"

namespace sandy::verify {

class CanaryListener {
 public:
  // At an address of this machine's own. What other machines send there is dropped, and counts for nothing.
  static Result<CanaryListener> tcp(const std::string& address);
  static Result<CanaryListener> udp(const std::string& address);
  // A path, or with a first "@" an abstract name. `type`: SOCK_STREAM or SOCK_DGRAM.
  static Result<CanaryListener> unix_socket(const std::string& address, int type);

  const std::string& address() const { return address_; }
  std::uint16_t port() const { return port_; }
  // Whether anything came since it was asked last.
  bool visited();

 private:
  CanaryListener() = default;
  bool is_from_here(const sockaddr_storage& from) const;
  static Result<CanaryListener> internet(const std::string& address, int type);
  UniqueFd fd_;
  std::string address_;
  std::uint16_t port_ = 0;
  bool connections_ = true;
};

}  // namespace sandy::verify
