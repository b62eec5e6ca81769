#include "policy/network_rule.h"

#include <algorithm>

#include "policy/host_name.h"
#include "policy/port.h"

namespace sandy::policy {
namespace {

constexpr std::size_t kMaxRule = 1100;  // a name of 253 characters, four bytes each in UTF-8, with a port

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Result<NetworkRule> parse() {
    if (text_.empty()) return refuse("an empty rule");
    if (text_.size() > kMaxRule) return refuse("longer than a name with a port can be");
    if (text_.find("://") != std::string_view::npos) return refuse("is a URL", "write the host's name alone, with :PORT where it is not 80 or 443");
    if (std::ranges::any_of(text_, [](char c) { return static_cast<unsigned char>(c) <= ' ' || c == 0x7F; })) {
      return refuse("has a space or a control character");
    }
    if (text_.find('%') != std::string_view::npos) return refuse("has a %, as IPv6 zones and URLs have", "write the address without its zone");
    return text_.starts_with('[') ? bracketed() : plain();
  }

 private:
  std::unexpected<Error> refuse(std::string why, std::string fix = "write NAME, *.NAME, ADDRESS:PORT or ADDRESS/PREFIX:PORT, names with :PORT where they need one") const {
    return fail('"' + printable(text_.substr(0, 300)) + '"', std::move(why), std::move(fix));
  }

  bool take_port(std::string_view digits) {
    rule_.port = parse_port(digits);
    return rule_.port.has_value();
  }

  Result<NetworkRule> bracketed() {
    const auto end = text_.find(']');
    if (end == std::string_view::npos) return refuse("has a [ without its ]");
    const auto rest = text_.substr(end + 1);
    if (!rest.empty() && (rest[0] != ':' || !take_port(rest.substr(1)))) return refuse("has something else than :PORT, from 1 to 65535, behind its ]");
    const auto inside = text_.substr(1, end - 1);
    if (inside.find(':') == std::string_view::npos) return refuse("has brackets around something else than an IPv6 address");
    return addresses(inside);
  }

  Result<NetworkRule> plain() {
    std::string_view host = text_;
    const auto colon = host.find(':');
    if (colon != std::string_view::npos) {
      if (host.find(':', colon + 1) != std::string_view::npos) return refuse("has more than one colon", "put an IPv6 address in brackets: [ADDRESS]:PORT");
      if (!take_port(host.substr(colon + 1))) return refuse("has no port from 1 to 65535 behind its colon");
      host = host.substr(0, colon);
    }
    if (host.find('/') != std::string_view::npos) return addresses(host);
    if (parse_ip_address(host)) return addresses(host);
    if (host == "*") return refuse("would name every host", "name the domains that are meant");
    rule_.kind = host.starts_with("*.") ? NetworkRule::Kind::subdomains : NetworkRule::Kind::name;
    if (rule_.kind == NetworkRule::Kind::subdomains) host.remove_prefix(2);
    if (host.find('*') != std::string_view::npos) return refuse("has a * elsewhere than in a leading *.");
    auto name = canonical_host_name(host);
    if (!name) return refuse(name.error().why);
    if (rule_.kind == NetworkRule::Kind::subdomains && is_public_suffix(*name)) {
      return refuse("anyone can have a name below " + *name + ": it is a public suffix", "name the domain that is meant");
    }
    rule_.name = std::move(*name);
    return std::move(rule_);
  }

  Result<NetworkRule> addresses(std::string_view text) {
    rule_.kind = NetworkRule::Kind::network;
    if (text.find('/') != std::string_view::npos) {
      const auto network = parse_ip_network(text);
      if (!network) return refuse("no network: ADDRESS/PREFIX, and no bit set behind the prefix");
      rule_.network = *network;
    } else {
      const auto address = parse_ip_address(text);
      if (!address) return refuse("no address");
      rule_.network = IpNetwork{*address, address->bits()};
    }
    return std::move(rule_);
  }

  std::string_view text_;
  NetworkRule rule_;
};

}  // namespace

std::string NetworkRule::text() const {
  std::string out = (kind == Kind::subdomains ? "*." : "") + name;
  if (kind == Kind::network) {
    out = network.prefix == network.address.bits() ? network.address.text() : network.text();
    if (network.address.v6) out = '[' + out + ']';
  }
  if (port) out += ':' + std::to_string(*port);
  return out;
}

Result<NetworkRule> parse_network_rule(std::string_view text) { return Parser(text).parse(); }

}  // namespace sandy::policy
