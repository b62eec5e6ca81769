// IPv4 and IPv6 addresses and networks. Pure.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace sandy::policy {

// In the order of the network: an IPv4 address is the first four of `bytes`, and the others are 0.
struct IpAddress {
  std::array<std::uint8_t, 16> bytes{};
  bool v6 = false;

  int bits() const { return v6 ? 128 : 32; }
  std::string text() const;  // dotted decimal, or RFC 5952
  auto operator<=>(const IpAddress&) const = default;
};

// An address and all others that share its first `prefix` bits.
struct IpNetwork {
  IpAddress address;
  int prefix = 0;

  bool contains(const IpAddress& other) const;
  std::string text() const;
  auto operator<=>(const IpNetwork&) const = default;
};

// Four decimal numbers from 0 to 255 without leading zeros, or the text of RFC 4291, section 2.2,
// without a zone. The other spellings that inet_aton(3) knows (127.1, 0x7f.0.0.1, 2130706433) are
// none here.
std::optional<IpAddress> parse_ip_address(std::string_view text);

// "ADDRESS/PREFIX"; the bits after the prefix are 0.
std::optional<IpNetwork> parse_ip_network(std::string_view text);

}  // namespace sandy::policy
