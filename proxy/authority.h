// The host and port that a client names: in HTTP's target and Host, in SOCKS. Pure.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "policy/ip_address.h"

namespace sandy::proxy {

// A canonical name (policy/host_name.h), or an address.
using Host = std::variant<std::string, policy::IpAddress>;

std::string text(const Host& host);  // an IPv6 address without brackets

struct Authority {
  Host host;
  std::optional<std::uint16_t> port;
  auto operator<=>(const Authority&) const = default;
};

// A name or an IPv4 address as people write it; with `brackets` an IPv6 address in [], else a bare one. None: it is neither.
std::optional<Host> parse_host(std::string_view text, bool brackets);

// RFC 3986, section 3.2, "HOST" or "HOST:PORT", without user information. An empty port is none; 0 and more than 65535 are not accepted.
std::optional<Authority> parse_authority(std::string_view text);

}  // namespace sandy::proxy
