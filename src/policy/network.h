// The part of validate() that looks at the network's rules.
#pragma once

#include "base/error.h"
#include "policy/draft.h"
#include "policy/policy.h"

namespace sandy::policy {

Result<Network> check_network(const NetworkDraft& draft);

}  // namespace sandy::policy
