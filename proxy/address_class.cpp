#include "proxy/address_class.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

namespace sandy::proxy {
namespace {

using policy::IpAddress;
using policy::IpNetwork;

using Table = std::vector<std::pair<IpNetwork, AddressClass>>;

// The first row that has the address counts.
Table table(std::initializer_list<std::pair<const char*, AddressClass>> rows) {
  Table out;
  for (const auto& [text, address_class] : rows) out.emplace_back(*policy::parse_ip_network(text), address_class);
  return out;
}

const Table& ipv4() {
  using enum AddressClass;
  static const Table rows = table({
      {"0.0.0.0/8", unspecified},
      {"10.0.0.0/8", private_},
      {"100.100.100.200/32", metadata},  // Alibaba
      {"100.64.0.0/10", private_},
      {"127.0.0.0/8", loopback},
      {"168.63.129.16/32", metadata},  // Azure's, in public space, but answered by the machine's own host
      {"169.254.169.254/32", metadata},
      {"169.254.0.0/16", link_local},
      {"172.16.0.0/12", private_},
      {"192.0.0.192/32", metadata},  // Oracle
      {"192.0.0.0/24", reserved},
      {"192.0.2.0/24", documentation},
      {"192.88.99.0/24", tunnel},
      {"192.168.0.0/16", private_},
      {"198.18.0.0/15", benchmark},
      {"198.51.100.0/24", documentation},
      {"203.0.113.0/24", documentation},
      {"224.0.0.0/4", multicast},
      {"255.255.255.255/32", broadcast},
      {"240.0.0.0/4", reserved},
  });
  return rows;
}

const Table& ipv6() {
  using enum AddressClass;
  static const Table rows = table({
      {"::/128", unspecified},
      {"::1/128", loopback},
      {"64:ff9b:1::/48", private_},  // RFC 8215: NAT64 of a network's own
      {"2001::/32", tunnel},         // Teredo
      {"2001::/23", reserved},
      {"2001:db8::/32", documentation},
      {"2002::/16", tunnel},  // 6to4
      {"3fff::/20", documentation},
      {"fd00:ec2::254/128", metadata},   // Amazon
      {"fd20:ce::254/128", metadata},    // Google
      {"fd00:42::42/128", metadata},     // Scaleway
      {"fc00::/7", private_},
      {"fe80::/10", link_local},
      {"fec0::/10", private_},
      {"ff00::/8", multicast},
  });
  return rows;
}

bool in(const IpAddress& address, const char* network) { return policy::parse_ip_network(network)->contains(address); }

IpAddress last_four(const IpAddress& address) {
  IpAddress out;
  std::copy(address.bytes.begin() + 12, address.bytes.end(), out.bytes.begin());
  return out;
}

// RFC 5214, section 6.1: an interface identifier of ::0:5efe or ::200:5efe and an IPv4 address.
bool is_isatap(const IpAddress& address) {
  const auto* id = address.bytes.data() + 8;
  return (id[0] & 0xFC) == 0 && id[1] == 0 && id[2] == 0x5E && id[3] == 0xFE;
}

}  // namespace

AddressClass classify(const IpAddress& address) {
  for (const auto& [network, address_class] : address.v6 ? ipv6() : ipv4()) {
    if (network.contains(address)) return address_class;
  }
  if (!address.v6) return AddressClass::public_;
  if (in(address, "::ffff:0:0/96") || in(address, "64:ff9b::/96")) return classify(last_four(address));
  if (is_isatap(address)) return AddressClass::tunnel;
  return in(address, "2000::/3") ? AddressClass::public_ : AddressClass::reserved;
}

const char* words(AddressClass address_class) {
  switch (address_class) {
    case AddressClass::public_: return "a public address";
    case AddressClass::unspecified: return "no address to connect to";
    case AddressClass::loopback: return "this machine's own loopback";
    case AddressClass::private_: return "a private address";
    case AddressClass::link_local: return "a link-local address";
    case AddressClass::metadata: return "a cloud's metadata service";
    case AddressClass::multicast: return "a multicast address";
    case AddressClass::broadcast: return "a broadcast address";
    case AddressClass::documentation: return "an address for examples";
    case AddressClass::benchmark: return "an address for benchmarks";
    case AddressClass::tunnel: return "an address that stands for another one";
    case AddressClass::reserved: return "a reserved address";
  }
  return "an address of no known kind";
}

}  // namespace sandy::proxy
