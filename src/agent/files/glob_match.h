// Glob patterns, as the file tools of deepagents read them. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "agent/files/result.h"

namespace sandy::files {

inline constexpr std::size_t kMaxExpansions = 1000;        // patterns that braces may make
inline constexpr std::size_t kMaxExpandedBytes = 262'144;  // of all of them together

// - `*` any characters, `?` one character (UTF-8; a byte that is no UTF-8 counts as one), `[a-z]`,
//   `[!a]`, `[^a]`; no escapes: a backslash is a backslash, as in Python's fnmatch. None of them
//   matches "/".
// - `{a,b}` alternatives, nested too; `{a}` and unbalanced braces are literal.
// - A pattern without "/" is matched against the last component of a path, whatever is before it.
// - A pattern with "/" is matched against the whole path, relative to the root of the search; a "/"
//   at its start changes nothing else. A component `**` matches any number of components that don't
//   start with a dot; at the end at least one. A pattern that ends in "/" matches no file (unless
//   "**" is before it).
// - A leading dot is matched by a dot only, in every component.
class GlobPattern {
 public:
  enum class Dots {
    need_a_dot,   // `*.py` does not match ".d.py"
    are_ordinary  // it does, where the pattern has no "/": grep --include of GNU
  };

  // Errors: invalid_pattern (a component ".."), pattern_too_broad.
  static FileResult<GlobPattern> compile(std::string_view pattern, Dots dots = Dots::need_a_dot);

  // `path` is relative to the root of the search, without "." and "..".
  bool matches(std::string_view path) const;
  bool has_slash() const { return has_slash_; }

 private:
  struct Candidate {
    std::string text;                     // without "/"
    std::vector<std::string> components;  // with "/"; "**" stands for itself
  };

  std::vector<Candidate> candidates_;
  bool has_slash_ = false;
  Dots dots_ = Dots::need_a_dot;
};

// One component against one pattern without "**". Leading dots are the caller's business.
bool match_component(std::string_view name, std::string_view pattern);

// The patterns that the braces of `pattern` stand for.
FileResult<std::vector<std::string>> expand_braces(std::string_view pattern);

}  // namespace sandy::files
