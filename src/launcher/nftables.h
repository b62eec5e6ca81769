// The rules of a sandbox's network namespace.
#pragma once

#include <netinet/in.h>

#include "launcher/netlink.h"

namespace sandy::launcher {

// Where the rules send what a sandbox sends. IPv6 is there only where the kernel has it.
struct Addresses {
  in_addr gateway4, own4;
  in6_addr gateway6, own6;
  bool v6;
};

inline constexpr uint16_t kTcpPort = 1;   // at the gateway address: every TCP connection, whatever it was for
inline constexpr uint16_t kDnsPort = 53;  // every datagram for a port 53

//   chain divert (nat, output)      the sandbox's own loopback and address: as it is
//                                   TCP: to the gateway's kTcpPort; who accepts there asks for the original destination (SO_ORIGINAL_DST)
//                                   UDP to port 53: to the gateway's kDnsPort
//   chain refuse (filter, output)   own addresses and the gateway's: as it is; all other: dropped, which the sender sees at once (EPERM)
// Nothing depends on the second chain, as there is no interface to anywhere: it makes refusals quick.
void add_rules(NetlinkBatch& batch, const Addresses& addresses);

}  // namespace sandy::launcher
