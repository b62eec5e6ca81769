// Our child processes: those that we started, and those that became ours.
//
// bubblewrap's child waits for its parent early in a start; if the parent is killed just then, the child waits for ever. As a subreaper
// (prctl(2), PR_SET_CHILD_SUBREAPER) we inherit it, and end it.
#pragma once

#include <sys/types.h>

#include <chrono>

namespace sandy::host {

// From now on orphans below us are our children, and nothing that we start gets a capability by inheritance: bubblewrap takes
// one (of a service's or a container's ambient set) for an old set-up of its own, and ends.
void prepare_for_children();

// A process that we started and wait for ourselves.
void note_child(pid_t pid);
void forget_child(pid_t pid);

// Kills all children that nobody noted, and reaps them; waits up to `patience` for those that the kernel doesn't let die yet. To be called when
// a bubblewrap was killed.
void end_orphans(std::chrono::milliseconds patience);

// Once more before we end ourselves, if some were left.
void end_last_orphans(std::chrono::milliseconds patience);

}  // namespace sandy::host
