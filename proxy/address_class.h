// What kind of place an address is in. Pure.
#pragma once

#include "policy/ip_address.h"

namespace sandy::proxy {

enum class AddressClass {
  public_,
  unspecified,    // 0.0.0.0/8, ::
  loopback,
  private_,       // RFC 1918, RFC 4193 (unique local), RFC 6598 (carriers' shared), site-local
  link_local,
  metadata,       // of cloud machines, where keys are given out
  multicast,
  broadcast,
  documentation,
  benchmark,      // RFC 2544: also where synthetic addresses are from
  tunnel,         // leads to an address that is written within (6to4, Teredo, ISATAP)
  reserved,
};

// By the registries of special-purpose addresses (RFC 6890 and IANA's lists) and what is known of clouds. An IPv6 address that stands for an IPv4 one
// (mapped, RFC 4291; NAT64, RFC 6052) is of that one's class. IPv6 is public only in 2000::/3, as nothing else is given out.
AddressClass classify(const policy::IpAddress& address);

// For a sentence: "a private address".
const char* words(AddressClass address_class);

}  // namespace sandy::proxy
