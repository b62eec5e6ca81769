// The descendants of a process, found in /proc, and their end.
#pragma once

#include <sys/types.h>

#include <functional>
#include <vector>

namespace sandy::agent {

struct ProcessEntry {
  pid_t pid, parent;
};

// Every process that /proc (proc(5)) shows, from /proc/PID/stat. In a PID namespace: those of the sandbox.
std::vector<ProcessEntry> list_processes();

// Sends SIGKILL to every descendant of `root`, and not to `root`. Stops them all first, so that a process that forks
// faster than /proc can be read doesn't get away; `root` must be a subreaper, so that none leaves the tree. Returns
// whether none is left but zombies that `root` has yet to wait for.
bool kill_descendants(pid_t root);

// As above for every child of this process that `keep` doesn't name, and their descendants.
void kill_children_except(const std::vector<pid_t>& keep);

}  // namespace sandy::agent
