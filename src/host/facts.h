// Finds the facts about this host that a plan needs.
#pragma once

#include <cstdint>
#include <string>

#include "base/error.h"
#include "plan/host_facts.h"
#include "policy/policy.h"

namespace sandy::host {

// The caller's user, environment, home, and where the state directory should be. Makes nothing.
plan::HostFacts caller_facts();

// These, the state directory (made where it is missing), bubblewrap and its options, and the system's paths: the same for every policy while a process runs.
Result<plan::HostFacts> host_facts();

// Adds what this policy's own paths are.
Result<void> add_policy_paths(const policy::PolicyFields& policy, plan::HostFacts& facts);

// Adds the host's kernel file systems below the directories that this policy shows, wherever they are mounted. After add_policy_paths().
Result<void> add_kernel_trees(const policy::PolicyFields& policy, plan::HostFacts& facts);

// Adds the host's sockets below the directories that this policy or the default view shows. After add_policy_paths().
Result<void> add_sockets(const policy::PolicyFields& policy, plan::HostFacts& facts);

// This machine's memory, in bytes; 0 where that isn't known.
std::uint64_t ram();

// The caller's home directory: $HOME if it is absolute, else the password database's.
std::string home_directory();

}  // namespace sandy::host
