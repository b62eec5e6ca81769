#include "policy/ip_address.h"

#include <arpa/inet.h>

#include <charconv>

namespace sandy::policy {

std::string IpAddress::text() const {
  std::array<char, INET6_ADDRSTRLEN> buffer{};
  ::inet_ntop(v6 ? AF_INET6 : AF_INET, bytes.data(), buffer.data(), buffer.size());
  return buffer.data();
}

bool IpNetwork::contains(const IpAddress& other) const {
  if (other.v6 != address.v6) return false;
  for (int bit = 0; bit < prefix; bit += 8) {
    const auto byte = static_cast<std::size_t>(bit / 8);
    const int used = prefix - bit < 8 ? prefix - bit : 8;
    const auto mask = static_cast<std::uint8_t>(0xFF << (8 - used));
    if (((address.bytes[byte] ^ other.bytes[byte]) & mask) != 0) return false;
  }
  return true;
}

std::string IpNetwork::text() const { return address.text() + "/" + std::to_string(prefix); }

std::optional<IpAddress> parse_ip_address(std::string_view text) {
  // inet_pton(3) takes just these spellings, from a C string.
  if (text.size() >= INET6_ADDRSTRLEN || text.find('\0') != std::string_view::npos) return {};
  const std::string copy(text);
  IpAddress out;
  out.v6 = copy.find(':') != std::string::npos;
  if (::inet_pton(out.v6 ? AF_INET6 : AF_INET, copy.c_str(), out.bytes.data()) != 1) return {};
  return out;
}

std::optional<IpNetwork> parse_ip_network(std::string_view text) {
  const auto slash = text.find('/');
  if (slash == std::string_view::npos) return {};
  const auto address = parse_ip_address(text.substr(0, slash));
  const auto digits = text.substr(slash + 1);
  int prefix = -1;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), prefix);
  if (!address || error != std::errc() || end != digits.data() + digits.size()) return {};
  if (prefix < 0 || prefix > address->bits() || (digits.size() > 1 && digits[0] == '0')) return {};
  for (int bit = prefix; bit < address->bits(); ++bit) {
    if ((address->bytes[static_cast<std::size_t>(bit / 8)] >> (7 - bit % 8) & 1) != 0) return {};
  }
  return IpNetwork{*address, prefix};
}

}  // namespace sandy::policy
