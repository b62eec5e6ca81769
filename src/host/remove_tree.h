// Removes a directory that a sandbox wrote to, from outside.
#pragma once

#include <string>

#include "base/error.h"

namespace sandy::host {

// Removes `name` in the directory `parent_fd`, with all that is in it. Its content is hostile: no link is followed, no depth recurses, and a
// directory whose mode shuts us out is opened up first. Missing is success.
Result<void> remove_tree(int parent_fd, const std::string& name);

}  // namespace sandy::host
