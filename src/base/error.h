// The project's error value. Errors are returned (std::expected), gain context on the way up, and are
// printed once, at the edge (cli/ or the Python package).
#pragma once

#include <expected>
#include <string>
#include <string_view>

namespace sandy {

// A refusal in three parts, so that a person can act on it.
struct Error {
  std::string what;  // what was asked, e.g. "filesystem.read[0]: \"/data\""
  std::string why;   // why it can't be, e.g. "no such file or directory"
  std::string fix;   // how to get it; may be empty where the cause says it all

  // "what: why" and, where there is a fix, a second line "hint: fix".
  std::string text() const;
};

template <typename T>
using Result = std::expected<T, Error>;

inline std::unexpected<Error> fail(std::string what, std::string why, std::string fix = {}) {
  return std::unexpected<Error>(Error{std::move(what), std::move(why), std::move(fix)});
}

// The system's words for an errno value, without locale: strerrordesc_np(3), or "errno N".
std::string errno_text(int error_number);

// Bytes that came from outside, made safe to print: UTF-8 text is kept, control characters (so also
// terminal escapes and newlines), what reorders text, and bytes that are not UTF-8 become \xNN.
std::string printable(std::string_view bytes);

}  // namespace sandy
