// The file system that a sandbox sees, as bubblewrap operations.
//
// Theory of operation. A policy's rules are about host paths. Each is resolved first (host/), so what is mounted is a canonical path, at that
// same path in the sandbox, from a descriptor; the links that led to it are made again, so that every spelling works and
// nothing else of the link's directory shows. All entries, the system's and the policy's, go into one map by destination. A path sorts before
// what is below it, so that walking the map in order mounts parents first: the most specific rule wins, whatever the order in the policy.
//
// Two rules protect what is hidden or read-only below a writable tree:
//   - every directory between them is made a mount point of its own, because a mount point can't be renamed or removed: else
//     `mv a b; mkdir a` would put a new, writable directory in the protected one's place;
//   - a path to deny must exist. Nothing can be mounted on a name that isn't there without leaving a placeholder on the host, so a policy that asks
//     for it is refused.
// A socket of the host in an exposed tree is hidden as a denied file is (hidden_sockets.h).
#pragma once

#include "plan/plan.h"

namespace sandy::plan {

// Fills plan.root, slots, mounts, etc, hidden_sockets, workspace, home and root_names.
Result<void> plan_filesystem(const policy::PolicyFields& policy, const HostFacts& facts, SandboxPlan& plan);

}  // namespace sandy::plan
