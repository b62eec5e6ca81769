// What a path names.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "agent/files/result.h"

namespace sandy::files {

struct PathInfo {
  std::string_view type;      // "file", "directory", "symlink" or "other"
  std::uint64_t size = 0;     // bytes
  std::uint32_t mode = 0;     // permission bits, 07777
  std::int64_t mtime_ns = 0;  // since the epoch
};

// A symlink at the end of the path is not followed.
FileResult<PathInfo> stat_path(const std::string& path);

}  // namespace sandy::files
