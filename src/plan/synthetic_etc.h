// The sandbox's /etc: copies of the host's entries that programs need, and files that name the sandbox instead of the host.
#pragma once

#include "plan/plan.h"

namespace sandy::plan {

// `home`: the home directory inside. `etc_names`: the host's entries to copy.
EtcView synthetic_etc(const policy::Process& process, const std::string& home, bool has_network, const std::vector<std::string>& etc_names);

}  // namespace sandy::plan
