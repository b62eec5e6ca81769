// The tree below a directory, in a fixed order.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "agent/files/directory.h"
#include "agent/files/result.h"
#include "base/unique_fd.h"

namespace sandy::files {

// A point in time up to which a search may go on.
class Budget {
 public:
  // 0: no end.
  explicit Budget(std::chrono::milliseconds length);
  bool spent() const;

 private:
  std::chrono::steady_clock::time_point end_;
};

struct WalkReport {
  std::uint64_t errors = 0;  // directories that could not be read
  bool over_budget = false;
};

class Walk {
 public:
  enum class Next { go_on, stop };
  // `path` is relative to the root of the walk; `type` is DT_REG, DT_LNK, … (never DT_DIR).
  using Visit = std::function<Next(const std::string& path, unsigned char type)>;

  Walk(const Budget& budget, std::stop_token stop) : budget_(budget), stop_(std::move(stop)) {}

  // Names of directories that are not entered, at any depth (the root itself is).
  std::vector<std::string> exclude;

  // Visits all that is no directory below `root`, sorted by the bytes of the path. Symlinks are
  // visited, not followed. Below "/" the pseudo file systems /proc, /sys and /dev are left out:
  // they are endless, and no user's files. One directory's names are held at a time, and those of
  // its parents. The error is `cancelled`; a directory that can't be read is counted.
  FileResult<WalkReport> run(const UniqueFd& root, const Visit& visit);

 private:
  struct Level {
    std::size_t path_length = 0;          // of its own path, with a "/" at its end
    std::vector<DirectoryEntry> entries;  // those left are at the end, the next last
  };

  FileResult<void> enter(const UniqueFd& root, const std::string& path);

  const Budget& budget_;
  std::stop_token stop_;
  std::vector<Level> levels_;
  WalkReport report_;
};

// Joins records (strings that each end with NUL) into chunks for a sink.
class RecordSink {
 public:
  explicit RecordSink(const Sink& sink) : sink_(sink) {}
  void add(std::string_view field);  // one string and its NUL
  // Passes on what is there if it is much; false once the sink wants no more.
  bool flush_if_full();
  bool flush();

 private:
  const Sink& sink_;
  std::string buffer_;
};

}  // namespace sandy::files
