// Finding files by name.
#pragma once

#include <chrono>
#include <cstdint>
#include <stop_token>
#include <string>
#include <string_view>

#include "agent/files/result.h"

namespace sandy::files {

struct GlobOptions {
  std::uint64_t max_matches = 10'000;
  std::chrono::milliseconds budget{5000};  // 0: none
};

struct GlobReport {
  std::uint64_t matches = 0;
  std::uint64_t walk_errors = 0;  // directories that could not be read
  bool truncated = false;
  // "" | "budget": narrow the search (time, or more than max_matches) | "unreadable": walk_errors >
  // 0, which wins.
  std::string_view truncation_reason;
};

// Gives `sink` the regular files below `root` that match `pattern` (glob_match.h), as paths
// relative to `root`, each with NUL, sorted by bytes. A symlink counts where it leads to a regular
// file below `root`; links to directories are not entered. Errors: not_a_directory,
// invalid_pattern, pattern_too_broad, and those of opening `root`.
FileResult<GlobReport> glob(const std::string& root, std::string_view pattern,
                            const GlobOptions& options, const Sink& sink,
                            std::stop_token stop = {});

}  // namespace sandy::files
