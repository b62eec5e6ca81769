// Finds out whether, and how, this host lets us have control groups of our own. Asks nobody: a bus that is there and doesn't answer shows when a sandbox starts.
#pragma once

#include <string>
#include <vector>

#include "plan/host_facts.h"

namespace sandy::cgroup {

// In a delegated directory: the group of those of its processes that are in no sandbox.
inline constexpr const char* kHostGroup = "sandy-host";

// The first that there is:
//   the caller's service manager, where systemd runs and its bus is there: the user's, or for root the system's;
//   a delegated directory: our own cgroup, or the one above it (a container, a service with Delegate=yes).
plan::CgroupFacts find_support();

// Where the caller's service manager listens, of the places that there are: its own socket, as systemctl(1) uses it, and the bus.
struct ManagerAddress {
  std::string address;  // for D-Bus
  bool is_bus = false;  // others are on it too
};
std::vector<ManagerAddress> manager_addresses();

}  // namespace sandy::cgroup
