// The sandbox's /etc: copies of the host's entries that programs need, and files that name the sandbox instead of the host.
#pragma once

#include "plan/plan.h"

namespace sandy::plan {

// `home`: the home directory inside. `etc_names`: the host's entries to copy.
EtcView synthetic_etc(const policy::Process& process, const std::string& home, bool has_network, const std::vector<std::string>& etc_names);

// In a network, where the proxy is: DNS, an HTTP proxy at port 3128, SOCKS at 1080 (launcher/network.h, proxy/connection.h).
inline constexpr const char* kGateway = "198.18.0.1";

}  // namespace sandy::plan
