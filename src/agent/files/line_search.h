// The lines of one open file that contain one of some strings.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "agent/files/regular_file.h"
#include "agent/files/result.h"
#include "agent/files/walk.h"

namespace sandy::files {

class LineSearch {
 public:
  // Line number from 1; the text without LF, at most kGrepTextCap bytes, valid during the call.
  // False: enough.
  using Found = std::function<bool(std::uint64_t line, std::string_view text)>;
  enum class End { file, enough, over_budget };

  // `pattern` as for grep().
  explicit LineSearch(std::string_view pattern);

  // Reads the file once, in blocks. Errors: io and others of read(2), cancelled.
  FileResult<End> run(const RegularFile& file, const Budget& budget, const std::stop_token& stop,
                      const Found& found);

 private:
  // A line end splits what is in the buffer: complete lines before it, the start of one behind it.
  struct Block {
    std::size_t have = 0;        // bytes in the buffer
    std::uint64_t line = 1;      // number of the line at the buffer's start
    bool line_cut = false;       // that line began before the buffer
    bool line_reported = false;  // … and has been found
  };

  bool search(Block& block, std::size_t begin, std::size_t end, bool count_rest,
              const Found& found);
  std::string_view excerpt(std::size_t line_begin, std::size_t line_end, bool line_cut,
                           std::size_t hit) const;

  std::vector<std::string> needles_;
  std::vector<std::size_t> next_;  // per needle: where it is next; while a block is searched
  std::size_t longest_ = 0;        // bytes of the longest needle
  bool may_skip_holes_ = false;    // no needle has a NUL, which is what a hole reads as
  std::size_t capacity_ = 0;
  std::unique_ptr<char[]> buffer_;
};

}  // namespace sandy::files
