// The sandboxes of this user that run, whichever process has started them: found by their control groups.
#pragma once

#include <string>
#include <vector>

#include "cgroup/usage.h"
#include "policy/policy.h"

namespace sandy::cgroup {

struct Running {
  std::string id;
  Directory group;
};

// By id. As root: of all users.
std::vector<Running> running_sandboxes();

// What it has used, and the limits that stand.
Usage usage_of(const Running& sandbox);
policy::GroupLimits limits_of(const Running& sandbox);

}  // namespace sandy::cgroup
