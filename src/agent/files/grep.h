// Finding lines by a literal string.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "agent/files/result.h"

namespace sandy::files {

inline constexpr std::size_t kGrepTextCap = 65'536;  // bytes of one line's text in a result

struct GrepOptions {
  // Which files: "" all; without "/" by name at any depth, where `*` matches a leading dot too
  // (grep --include); with "/" by the path relative to the root (glob_match.h). A root that is a
  // file is only judged by a glob without "/".
  std::string glob;
  std::vector<std::string> exclude_dirs;  // names of directories not to enter; the root itself is
  std::optional<std::uint64_t> max_count;
  std::chrono::milliseconds budget{0};    // 0: none
  std::optional<std::string> shown_root;  // what paths in the result start with instead of `root`
};

struct GrepReport {
  std::uint64_t matches = 0;
  bool truncated = false;         // there are more than max_count, or the budget was spent
  std::uint64_t walk_errors = 0;  // directories that could not be read
  std::uint64_t unreadable = 0;   // files that could not be read, or not to their end
};

// Gives `sink` the lines of the files at or below `root` in which `pattern` occurs, byte by byte:
// path, NUL, line number, NUL, text, NUL; sorted by path, then line. A pattern of several lines
// finds each of them, as grep -F does; "" finds all lines.
//
// Every regular file is searched, also with NUL bytes or bad UTF-8 in it; symlinks below the root,
// FIFOs, sockets and devices are not. The text is the line without its LF (a CR stays), with U+FFFD
// for NUL; of a line longer than kGrepTextCap it is a part of at most that size in which the match
// is. Memory is bounded whatever the files are; holes of sparse files are jumped over. Errors:
// not_a_file, invalid_pattern, pattern_too_broad (of the glob), and those of opening `root`.
FileResult<GrepReport> grep(const std::string& root, std::string_view pattern,
                            const GrepOptions& options, const Sink& sink,
                            std::stop_token stop = {});

}  // namespace sandy::files
