// A page of a text file, or a small binary file, for a model to look at.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>

#include "agent/files/result.h"

namespace sandy::files {

inline constexpr std::size_t kReadCap = 512'000;  // bytes: of a page, and of a binary file

// What the caller appends to a page that is `truncated` must fit in here (the sentence that
// deepagents appends has 194 bytes), so that page and sentence together stay within kReadCap.
inline constexpr std::size_t kTruncationReserve = 194;

struct ReadOptions {
  std::uint64_t offset = 0;    // lines to skip
  std::uint64_t limit = 2000;  // lines to give; 0 gives none, without looking at the text
  bool binary = false;         // not text by its name; the content decides otherwise
};

// The window of lines that `content` holds. 1 <= start_line <= end_line <= total_lines, and
// next_offset, where lines are left, is end_line.
struct ReadWindow {
  std::uint64_t start_line = 0;              // counted from 1
  std::uint64_t end_line = 0;                // the last line, counted from 1
  std::optional<std::uint64_t> total_lines;  // absent: the file is larger than 1 MiB and goes on
  std::optional<std::uint64_t> next_offset;  // absent: nothing is left
};

struct ReadPage {
  std::string content;  // at most kReadCap bytes: raw if `binary`, else UTF-8 with LF between lines
  bool binary = false;
  bool empty = false;                // the file has no bytes
  bool no_lines_requested = false;   // limit was 0
  bool truncated = false;            // cut by kReadCap: the caller appends its sentence
  std::uint64_t repaired = 0;        // ill-formed UTF-8 parts that became U+FFFD
  std::optional<ReadWindow> window;  // only of text with lines
};

// Text is a file whose first 8,192 bytes are UTF-8 (a character cut at that edge is whole); CRLF
// and a lone CR end a line as LF does. What is not UTF-8 further on is shown as U+FFFD, not
// refused: a log with one bad byte is still a log. A page ends where the next line would pass
// kReadCap - kTruncationReserve; that line is shown in part, and not counted unless it is the first
// (so that paging goes on behind a huge line). Errors: also not_a_file (anything but a regular
// file), too_large (binary), offset.
FileResult<ReadPage> read(const std::string& path, const ReadOptions& options,
                          std::stop_token stop = {});

}  // namespace sandy::files
