// What a network rule names: a host, the hosts below a domain, or addresses. Pure.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "policy/ip_address.h"

namespace sandy::policy {

// The name by which a sandbox reaches this machine's loopback, where allow_private names it with a port.
inline constexpr std::string_view kThisMachine = "host.sandy.internal";

struct NetworkRule {
  enum class Kind { name, subdomains, network };
  Kind kind = Kind::name;
  std::string name;                   // name, subdomains (without "*."): canonical
  IpNetwork network;                  // network; a single address has all its bits as prefix
  std::optional<std::uint16_t> port;  // none: what that means is the list's to say

  // The one spelling of all that mean the same: "name", "*.name", "address", "address/prefix", and then ":port".
  std::string text() const;
  auto operator<=>(const NetworkRule&) const = default;
};

// NAME, *.NAME, ADDRESS or ADDRESS/PREFIX, with or without :PORT; an IPv6 address, with its prefix, in brackets.
// Refused: "*" alone and "*." with a public suffix, URLs, spaces and control characters, IPv6 zones, IPv4 addresses in other spellings than four
// decimal numbers. The error's `what` is the text.
Result<NetworkRule> parse_network_rule(std::string_view text);

}  // namespace sandy::policy
