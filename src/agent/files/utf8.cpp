#include "agent/files/utf8.h"

#include <cstdint>
#include <cstring>

namespace sandy::files {
namespace {

// Bytes below 0x80 at the start of `text`, eight at a time.
std::size_t ascii_run(std::string_view text) {
  std::size_t done = 0;
  while (text.size() - done >= 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, text.data() + done, 8);
    if ((word & 0x8080808080808080U) != 0) break;
    done += 8;
  }
  while (done < text.size() && static_cast<std::uint8_t>(text[done]) < 0x80) ++done;
  return done;
}

}  // namespace

Utf8Step utf8_step(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(text[i]); };
  const std::uint8_t first = byte(0);
  if (first < 0x80) return {Utf8Step::valid, 1, first};
  std::size_t length = 0;
  std::uint8_t low = 0x80;  // the range of the second byte
  std::uint8_t high = 0xBF;
  if (first >= 0xC2 && first <= 0xDF) {
    length = 2;
  } else if (first >= 0xE0 && first <= 0xEF) {
    length = 3;
    if (first == 0xE0) low = 0xA0;
    if (first == 0xED) high = 0x9F;
  } else if (first >= 0xF0 && first <= 0xF4) {
    length = 4;
    if (first == 0xF0) low = 0x90;
    if (first == 0xF4) high = 0x8F;
  } else {
    return {Utf8Step::invalid, 1, 0};
  }
  char32_t code_point = first & (0xFFU >> (length + 1));
  for (std::size_t i = 1; i < length; ++i) {
    if (i >= text.size()) return {Utf8Step::cut, i, 0};
    if (byte(i) < low || byte(i) > high) return {Utf8Step::invalid, i, 0};
    code_point = (code_point << 6) | (byte(i) & 0x3FU);
    low = 0x80;
    high = 0xBF;
  }
  return {Utf8Step::valid, length, code_point};
}

bool is_utf8(std::string_view text, bool may_be_cut) {
  while (true) {
    text.remove_prefix(ascii_run(text));
    if (text.empty()) return true;
    const Utf8Step step = utf8_step(text);
    if (step.kind == Utf8Step::cut) return may_be_cut;
    if (step.kind == Utf8Step::invalid) return false;
    text.remove_prefix(step.length);
  }
}

std::size_t append_repaired(std::string& out, std::string_view text, bool drop_cut) {
  std::size_t repaired = 0;
  while (true) {
    const std::size_t run = ascii_run(text);
    out.append(text.substr(0, run));
    text.remove_prefix(run);
    if (text.empty()) return repaired;
    const Utf8Step step = utf8_step(text);
    if (step.kind == Utf8Step::valid) {
      out.append(text.substr(0, step.length));
    } else if (step.kind == Utf8Step::invalid || !drop_cut) {
      out.append("\xEF\xBF\xBD");
      ++repaired;
    }
    text.remove_prefix(step.length);
  }
}

std::string_view utf8_prefix(std::string_view text, std::size_t limit) {
  if (text.size() <= limit) return text;
  std::size_t end = limit;
  // Up to three continuation bytes belong to the character that the limit cuts; more are no
  // character.
  for (int i = 0; i < 3 && end > 0 && (static_cast<std::uint8_t>(text[end]) & 0xC0) == 0x80; ++i)
    --end;
  return text.substr(0, end);
}

}  // namespace sandy::files
