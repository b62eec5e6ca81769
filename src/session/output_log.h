// The last bytes of a process' output, by offset. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>

namespace sandy::session {

enum class OutputStream : unsigned char { out, err };

// An offset counts the bytes of both streams, in the order in which they came. Memory: some twice the limit at most, whatever comes, and what readers are waited for with.
class OutputLog {
 public:
  // `limit`: bytes that are kept.
  explicit OutputLog(std::size_t limit) : limit_(limit) {}

  void append(OutputStream stream, std::string bytes);
  // Forgets what is beyond the limit, but nothing from `needed` on.
  void trim(std::uint64_t needed);
  // Nothing more will come.
  void seal();

  std::uint64_t begin() const { return begin_; }
  std::uint64_t end() const { return end_; }

  struct Piece {
    OutputStream stream;
    std::string_view bytes;  // until the log changes
  };
  // What stands at an offset from begin() up to before end(): at most `most` bytes, of one stream.
  Piece at(std::uint64_t offset, std::size_t most) const;

 private:
  struct Block {
    OutputStream stream;
    std::uint64_t offset;
    std::string bytes;
  };
  std::size_t limit_;
  std::deque<Block> blocks_;  // without gaps up to end_; the first may begin before begin_
  std::uint64_t begin_ = 0, end_ = 0;
};

}  // namespace sandy::session
