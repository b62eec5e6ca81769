// What the agent is told when it starts, once, over its socket: never by argv or environment, which other processes see.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "session/wire/frame.h"

namespace sandy::wire {

struct Configuration {
  std::string workspace;             // absolute path of the workspace
  std::string home;
  std::string cwd;                   // working directory of commands that name none
  std::string shell = "/bin/sh";
  std::vector<std::string> root_names;  // top-level names that are the system's
  std::vector<std::string> environment;           // NAME=value
  bool workspace_names = false;      // unknown top-level names belong to the workspace (workspace_names.h)
  std::uint64_t open_files = 0, file_size = 0;    // resource limits of commands; 0 = inherited
  std::uint64_t watched_memory = 0;  // bytes of all commands' processes together, which the agent looks after; 0 = nobody does
  std::uint64_t watched_pids = 0;    // commands get an RLIMIT_NPROC for it; 0 = none
  bool command_groups = false;       // each command has a control group of its own (PROTOCOL.md, "spare")
  bool one_command = false;          // no other one comes: nothing is prepared for it
};

// From the `configure` frame: args are workspace, home, cwd, shell, then `root_names` names, then `environment`
// variables (both fields are counts).
Result<Configuration> parse_configuration(const Frame& frame);

// The frame that parse_configuration() reads.
Frame encode_configuration(const Configuration& configuration);

// `base` with each NAME=value of `changes` added or put in place of the one with that name.
std::vector<std::string> merge_environment(const std::vector<std::string>& base, const std::vector<std::string>& changes);

}  // namespace sandy::wire
