// Where a sandbox's network finds the proxy: DNS at port 53, an HTTP proxy at 3128, SOCKS at 1080. In the ranges of proxy/synthetic_addresses.h.
#pragma once

namespace sandy {

inline constexpr const char* kGatewayIpv4 = "198.18.0.1";
inline constexpr const char* kGatewayIpv6 = "fd53:616e:6479::1";

}  // namespace sandy
