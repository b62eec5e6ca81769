// Reads numbers and blocks of network byte order from the front of bytes. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace sandy::proxy {

class ByteReader {
 public:
  explicit ByteReader(std::span<const std::uint8_t> bytes) : rest_(bytes) {}

  bool empty() const { return rest_.empty(); }
  std::size_t size() const { return rest_.size(); }

  // A number of `width` bytes, at most 4.
  std::optional<std::uint32_t> number(std::size_t width) {
    const auto bytes = block(width);
    if (!bytes) return {};
    std::uint32_t out = 0;
    for (const std::uint8_t byte : *bytes) out = out << 8 | byte;
    return out;
  }

  std::optional<std::span<const std::uint8_t>> block(std::size_t size) {
    if (rest_.size() < size) return {};
    const auto out = rest_.first(size);
    rest_ = rest_.subspan(size);
    return out;
  }

  // A block whose size stands before it, as a number of `width` bytes.
  std::optional<std::span<const std::uint8_t>> counted(std::size_t width) {
    const auto size = number(width);
    return size ? block(*size) : std::nullopt;
  }

 private:
  std::span<const std::uint8_t> rest_;
};

}  // namespace sandy::proxy
