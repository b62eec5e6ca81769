// Judging and repairing UTF-8 (Unicode 15, section 3.9, table 3-7).
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace sandy::files {

struct Utf8Step {
  enum Kind { valid, invalid, cut };  // cut: the bytes end inside a sequence that is right so far
  Kind kind = valid;
  std::size_t length = 1;   // bytes; of an ill-formed sequence its maximal subpart (at least 1)
  char32_t code_point = 0;  // where valid
};

// Looks at the start of `text`, which must not be empty.
Utf8Step utf8_step(std::string_view text);

// True if all of `text` is well-formed; with `may_be_cut` its last sequence may lack its end.
bool is_utf8(std::string_view text, bool may_be_cut = false);

// Appends `text` to `out` with U+FFFD in place of each maximal ill-formed part; returns how many
// there were. A sequence that is cut at the end counts as ill-formed, or is left out with
// `drop_cut`.
std::size_t append_repaired(std::string& out, std::string_view text, bool drop_cut = false);

// The longest start of `text` that is at most `limit` bytes and does not end inside a character.
std::string_view utf8_prefix(std::string_view text, std::size_t limit);

}  // namespace sandy::files
