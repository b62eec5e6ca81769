// The start and the end of an output of any length, in bounded memory.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace sandy::agent {

// Keeps the first half and the last half of `capacity` bytes; counts what it left out between. Grows with what it is
// given, up to `capacity` (twice that for a moment while the tail is folded).
class KeptOutput {
 public:
  explicit KeptOutput(std::size_t capacity) : head_limit_(capacity - capacity / 2), tail_limit_(capacity / 2) {}

  void add(std::string_view bytes) {
    total_ += bytes.size();
    const auto take = std::min(bytes.size(), head_limit_ - head_.size());
    head_ += bytes.substr(0, take);
    bytes.remove_prefix(take);
    if (bytes.size() >= tail_limit_) {
      tail_.assign(bytes.substr(bytes.size() - tail_limit_));
      return;
    }
    // Folding only when the tail is twice too long keeps the cost at about one copy a byte.
    if (tail_.size() + bytes.size() > 2 * tail_limit_) tail_.erase(0, tail_.size() - tail_limit_);
    tail_ += bytes;
  }

  struct Result {
    std::string head, tail;  // together all that was kept; between them `omitted` bytes are missing
    std::uint64_t omitted = 0;
  };
  Result take() {
    if (tail_.size() > tail_limit_) tail_.erase(0, tail_.size() - tail_limit_);
    Result result{std::move(head_), std::move(tail_), 0};
    result.omitted = total_ - result.head.size() - result.tail.size();
    if (result.omitted == 0) {
      result.head += result.tail;
      result.tail.clear();
    }
    return result;
  }

 private:
  std::size_t head_limit_, tail_limit_;
  std::string head_, tail_;
  std::uint64_t total_ = 0;
};

}  // namespace sandy::agent
