#include "proxy/synthetic_addresses.h"

namespace sandy::proxy {
namespace {

const policy::IpNetwork& ipv4() {
  static const auto network = *policy::parse_ip_network("198.18.0.0/15");
  return network;
}

// "Sandy" behind the fd of addresses that are nobody else's.
const policy::IpNetwork& ipv6() {
  static const auto network = *policy::parse_ip_network("fd53:616e:6479::/96");
  return network;
}

policy::IpAddress at(const policy::IpNetwork& network, std::uint32_t number) {
  policy::IpAddress out = network.address;
  const auto end = static_cast<std::size_t>(out.bits() / 8);
  for (std::size_t i = 0; i < 4; ++i) out.bytes[end - 1 - i] = static_cast<std::uint8_t>(out.bytes[end - 1 - i] + (number >> (8 * i) & 0xFF));
  return out;
}

}  // namespace

std::optional<SyntheticAddresses::Pair> SyntheticAddresses::addresses_of(const std::string& name) {
  auto found = indices_.find(name);
  if (found == indices_.end()) {
    if (names_.size() >= max_names_) return {};
    found = indices_.emplace(name, static_cast<std::uint32_t>(names_.size())).first;
    names_.push_back(name);
  }
  const auto number = static_cast<std::uint32_t>(found->second + kReserved);
  return Pair{at(ipv4(), number), at(ipv6(), number)};
}

std::optional<std::string> SyntheticAddresses::name_of(const policy::IpAddress& address) const {
  const auto& network = address.v6 ? ipv6() : ipv4();
  if (!network.contains(address)) return {};
  std::uint32_t number = 0, base = 0;
  const auto end = static_cast<std::size_t>(address.bits() / 8);
  for (std::size_t i = end - 4; i < end; ++i) {
    number = number << 8 | address.bytes[i];
    base = base << 8 | network.address.bytes[i];
  }
  const std::size_t index = number - base - kReserved;
  if (number - base < kReserved || index >= names_.size()) return {};
  return names_[index];
}

}  // namespace sandy::proxy
