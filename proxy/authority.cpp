#include "proxy/authority.h"

#include <charconv>

#include "policy/host_name.h"

namespace sandy::proxy {

std::string text(const Host& host) {
  const auto* address = std::get_if<policy::IpAddress>(&host);
  return address != nullptr ? address->text() : std::get<std::string>(host);
}

std::optional<Host> parse_host(std::string_view text, bool brackets) {
  if (brackets && text.starts_with('[') && text.ends_with(']')) {
    const auto address = policy::parse_ip_address(text.substr(1, text.size() - 2));
    if (!address || !address->v6) return {};
    return *address;
  }
  if (const auto address = policy::parse_ip_address(text)) {
    if (brackets && address->v6) return {};
    return *address;
  }
  auto name = policy::canonical_host_name(text);
  if (!name) return {};
  return std::move(*name);
}

std::optional<Authority> parse_authority(std::string_view text) {
  Authority out;
  const auto bracket = text.rfind(']');
  const auto colon = text.find(':', bracket == std::string_view::npos ? 0 : bracket);
  auto host = parse_host(text.substr(0, colon), true);
  if (!host) return {};
  out.host = std::move(*host);
  if (colon == std::string_view::npos || colon + 1 == text.size()) return out;
  const auto digits = text.substr(colon + 1);
  unsigned port = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  if (error != std::errc() || end != digits.data() + digits.size() || digits.size() > 5 || port == 0 || port > 65'535) return {};
  out.port = static_cast<std::uint16_t>(port);
  return out;
}

}  // namespace sandy::proxy
