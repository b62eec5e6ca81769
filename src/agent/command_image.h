// From an `exec` frame to what a process needs: which program, arguments, environment, directory.
#pragma once

#include "agent/supervisor.h"
#include "session/wire/configuration.h"
#include "session/wire/frame.h"

namespace sandy::agent {

// An error is an errno value: EINVAL for a frame that is not in order or text with a NUL, E2BIG and the like.
// The image's descriptors are left for the caller.
std::expected<CommandImage, int> command_image(const wire::Frame& frame, const wire::Configuration& configuration);

// The paths that execvp(3) would try for `program` under this PATH: the name itself if it has a slash.
std::vector<std::string> path_candidates(const std::string& program, const std::vector<std::string>& environment);

}  // namespace sandy::agent
