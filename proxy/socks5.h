// SOCKS version 5, RFC 1928: bytes in, value out. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "policy/ip_address.h"

namespace sandy::proxy::socks5 {

using Bytes = std::span<const std::uint8_t>;

enum class Method : std::uint8_t { none = 0, unacceptable = 0xFF };
enum class Command : std::uint8_t { connect = 1, bind = 2, udp_associate = 3 };
enum class Reply : std::uint8_t {
  succeeded = 0,
  failure = 1,
  not_allowed = 2,
  network_unreachable = 3,
  host_unreachable = 4,
  connection_refused = 5,
  ttl_expired = 6,
  command_not_supported = 7,
  address_type_not_supported = 8,
};

struct NeedMore {};
struct Malformed {
  Reply reply = Reply::failure;  // what to say, where there is something to say it to
};

// The client's first message. `size`: how many bytes it took.
struct Greeting {
  bool offers_none = false;  // the method without authentication, the only one that there is
  std::size_t size = 0;
};

struct Request {
  Command command = Command::connect;
  std::variant<std::string, policy::IpAddress> host;  // a name is as it came, not canonical
  std::uint16_t port = 0;
  std::size_t size = 0;
};

// Both take all that was received and not used so far. At most 257 and 262 bytes are ever waited for.
std::variant<NeedMore, Malformed, Greeting> parse_greeting(Bytes bytes);
std::variant<NeedMore, Malformed, Request> parse_request(Bytes bytes);

std::vector<std::uint8_t> method_message(Method method);
// With the unspecified address as the bound one: it is nobody's business.
std::vector<std::uint8_t> reply_message(Reply reply);

}  // namespace sandy::proxy::socks5
