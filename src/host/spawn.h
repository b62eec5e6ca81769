// Starts a program of ours, or bubblewrap, with just the descriptors that it is to have.
#pragma once

#include <spawn.h>
#include <sys/types.h>

#include <string>
#include <vector>

#include "base/error.h"
#include "base/unique_fd.h"

namespace sandy::host {

struct Child {
  pid_t pid = -1;
  UniqueFd pidfd;  // readable when it has ended
};

// The child has the descriptors that it is given, and none above these: what we were started with ourselves isn't close-on-exec. It has no signal blocked or
// ignored, an empty environment (what bubblewrap starts with stays readable in the sandbox's /proc/1/environ), and a process group of its own: what a terminal or timeout(1) sends to ours is for us, and not for it to die of.
class Spawn {
 public:
  Spawn();
  ~Spawn();
  Spawn(const Spawn&) = delete;
  Spawn& operator=(const Spawn&) = delete;

  void open_null(int target);
  void dup(int from, int target);
  // Once. The child is known to host/children until it is reaped.
  Result<Child> run(const std::string& program, const std::vector<std::string>& argv);

 private:
  posix_spawn_file_actions_t actions_;
  posix_spawnattr_t attributes_;
  int highest_ = 2;  // target
};

}  // namespace sandy::host
