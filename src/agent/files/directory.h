// The entries of one directory.
#pragma once

#include <stop_token>
#include <string>
#include <vector>

#include "agent/files/result.h"
#include "base/unique_fd.h"

namespace sandy::files {

struct DirectoryEntry {
  std::string name;
  unsigned char type =
      0;  // DT_DIR, DT_REG, DT_LNK, … of readdir(3); never DT_UNKNOWN unless it vanished
};

// All entries but "." and "..", in the directory's own order. An invalid descriptor gives the error
// in errno.
FileResult<std::vector<DirectoryEntry>> read_directory(UniqueFd directory,
                                                       const std::stop_token& stop);

// Opens the directory at `path` for reading. Errors: not_a_directory where something else is there
// (file_not_found where it is in the middle of the path).
FileResult<UniqueFd> open_search_root(const std::string& path);

}  // namespace sandy::files
