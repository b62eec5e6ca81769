// The lines of an open file, with universal newlines, in constant memory.
#pragma once

#include <cstdint>
#include <stop_token>
#include <string>
#include <vector>

#include "agent/files/regular_file.h"
#include "agent/files/result.h"

namespace sandy::files {

class LineReader {
 public:
  enum class Line {
    whole,  // a line was read up to and with its end
    cut,    // more than `keep` bytes were there; the reader stands inside the line
    none,   // end of file
  };

  explicit LineReader(const RegularFile& file, std::stop_token stop);

  // Reads one line. Appends its bytes without LF, CRLF or CR to `out`, at most `keep` of them.
  FileResult<Line> next(std::string& out, std::size_t keep);
  // Reads over one line of any length.
  FileResult<Line> skip();
  // True if no byte is left.
  FileResult<bool> at_end();

  std::uint64_t position() const { return offset_ - (end_ - begin_); }  // bytes consumed

 private:
  FileResult<bool> fill();  // false: end of file
  FileResult<Line> advance(std::string* out, std::size_t keep);
  std::size_t line_end();  // index of the next CR or LF at or after begin_, or end_

  const RegularFile& file_;
  std::stop_token stop_;
  std::vector<char> buffer_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  std::size_t next_cr_ = 0;  // the next CR at or after begin_, or end_; found once, not once a line
  std::uint64_t offset_ = 0;  // of the file, behind the buffer
  bool sparse_ = false;
};

}  // namespace sandy::files
