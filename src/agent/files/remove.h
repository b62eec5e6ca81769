// Recursive delete.
#pragma once

#include <stop_token>
#include <string>

#include "agent/files/result.h"

namespace sandy::files {

// Removes the file, symlink or directory tree at `path`. No symlink below it, and none at its end,
// is followed. Directories that their owner locked (mode 0500, 0000) are opened up first; the
// directory that holds `path` is not. Any depth, with two descriptors. What can't be removed is
// left, the rest goes, and the first reason is returned. "/", ".", ".." and mount points are
// refused whole (permission_denied, invalid_path), before anything is removed; mount points further
// down stay with what is in them.
FileResult<void> remove(const std::string& path, std::stop_token stop = {});

}  // namespace sandy::files
