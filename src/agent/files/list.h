// The entries of a directory.
#pragma once

#include <stop_token>
#include <string>
#include <vector>

#include "agent/files/result.h"

namespace sandy::files {

struct ListEntry {
  std::string name;        // as it is: any bytes but "/" and NUL
  bool directory = false;  // a symlink to a directory is none
};

// Sorted by bytes. Errors: not_a_directory where `path` is something else.
FileResult<std::vector<ListEntry>> list(const std::string& path, std::stop_token stop = {});

}  // namespace sandy::files
