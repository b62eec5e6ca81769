// The host's sockets in what a sandbox sees. connect(2) asks for no writable mount, so each is hidden as a denied file is.
#pragma once

#include "plan/plan.h"
#include "plan/view_entries.h"

namespace sandy::plan {

// So many mounts cost a start about a fifth of a second; from there on it grows with the square.
inline constexpr std::size_t kMaxHiddenSockets = 256;

// Hides those that exposed trees show, but for those that a rule names: that is consent. Fills plan.hidden_sockets. What is bound later, nothing
// can hide: a mount needs something to be mounted on.
Result<void> hide_sockets(const HostFacts& facts, ViewEntries& entries, SandboxPlan& plan);

}  // namespace sandy::plan
