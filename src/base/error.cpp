#include "base/error.h"

#include <cstdint>
#include <cstring>

namespace sandy {
namespace {

// Length of the well-formed UTF-8 sequence at the start of `text`, or 0 (Unicode 15, table 3-7).
std::size_t utf8_length(std::string_view text) {
  auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(text[i]); };
  auto tail = [&](std::size_t i) { return i < text.size() && (byte(i) & 0xC0) == 0x80; };
  const std::uint8_t first = byte(0);
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first <= 0xDF) return tail(1) ? 2 : 0;
  if (first >= 0xE0 && first <= 0xEF) {
    if (!tail(1) || !tail(2)) return 0;
    if (first == 0xE0 && byte(1) < 0xA0) return 0;
    if (first == 0xED && byte(1) > 0x9F) return 0;
    return 3;
  }
  if (first >= 0xF0 && first <= 0xF4) {
    if (!tail(1) || !tail(2) || !tail(3)) return 0;
    if (first == 0xF0 && byte(1) < 0x90) return 0;
    if (first == 0xF4 && byte(1) > 0x8F) return 0;
    return 4;
  }
  return 0;
}

}  // namespace

std::string Error::text() const {
  std::string out = what;
  if (!why.empty()) out += (out.empty() ? "" : ": ") + why;
  if (!fix.empty()) out += "\nhint: " + fix;
  return out;
}

std::string errno_text(int error_number) {
  if (const char* text = strerrordesc_np(error_number)) return text;
  return "errno " + std::to_string(error_number);
}

namespace {

// What changes the order in which text is shown (Unicode's bidirectional formatting characters): U+061C, U+200E, U+200F, U+202A to U+202E, U+2066 to U+2069.
bool is_reordering(std::string_view character) {
  if (character == "\xD8\x9C") return true;
  if (character.size() != 3 || character[0] != '\xE2') return false;
  const auto second = static_cast<std::uint8_t>(character[1]), third = static_cast<std::uint8_t>(character[2]);
  return second == 0x80 ? third == 0x8E || third == 0x8F || (third >= 0xAA && third <= 0xAE) : second == 0x81 && third >= 0xA6 && third <= 0xA9;
}

}  // namespace

std::string printable(std::string_view bytes) {
  static constexpr char kHex[] = "0123456789abcdef";
  std::string out;
  while (!bytes.empty()) {
    const std::size_t length = utf8_length(bytes);
    const auto first = static_cast<std::uint8_t>(bytes[0]);
    // C1 controls (U+0080..U+009F) are C2 80..C2 9F: terminals act on them as on ESC sequences.
    const bool control = first < 0x20 || first == 0x7F ||
                         (length == 2 && first == 0xC2 && static_cast<std::uint8_t>(bytes[1]) < 0xA0) || is_reordering(bytes.substr(0, length));
    if (length == 0 || control) {
      const std::size_t count = length == 0 ? 1 : length;
      for (std::size_t i = 0; i < count; ++i) {
        const auto byte = static_cast<std::uint8_t>(bytes[i]);
        out += "\\x";
        out += kHex[byte >> 4];
        out += kHex[byte & 15];
      }
      bytes.remove_prefix(count);
    } else {
      out += bytes.substr(0, length);
      bytes.remove_prefix(length);
    }
  }
  return out;
}

}  // namespace sandy
