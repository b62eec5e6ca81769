// What the proxy takes of resolv.conf(5) when it has changed: name servers and search domains. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "policy/ip_address.h"

namespace sandy::proxy {

struct ResolvConf {
  std::vector<policy::IpAddress> servers;  // in their order; one with a zone (fe80::1%eth0) is left out
  std::vector<std::string> search;         // canonical
};

// Lines that are none of these, and words that are none, are passed over, as the C library does. Of several `search` and `domain` lines the last one counts.
ResolvConf parse_resolv_conf(std::string_view text);

}  // namespace sandy::proxy
