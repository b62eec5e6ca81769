// links: sandy_files
// Glob patterns: PATTERN NUL PATH. Whatever the pattern, an answer comes soon, and it is that of a
// matcher that is too simple to be wrong (and too slow for anything but short inputs).
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "agent/files/glob_match.h"
#include "broken.h"

namespace {

using namespace sandy::files;

std::vector<std::string_view> split(std::string_view text) {
  std::vector<std::string_view> out;
  while (!text.empty()) {
    const std::size_t slash = std::min(text.find('/'), text.size());
    if (slash > 0) out.push_back(text.substr(0, slash));
    text.remove_prefix(std::min(slash + 1, text.size()));
  }
  return out;
}

// By definition: "**" stands for no component, or for one that is not hidden and then "**" again.
bool simple(const std::vector<std::string_view>& path, std::size_t at,
            const std::vector<std::string_view>& pattern, std::size_t part) {
  if (part == pattern.size()) return at == path.size();
  if (pattern[part] == "**") {
    const bool last = part + 1 == pattern.size();
    if (last && at < path.size() && at + 1 == path.size()) return path[at][0] != '.';
    if (!last && simple(path, at, pattern, part + 1)) return true;
    return at < path.size() && path[at][0] != '.' && simple(path, at + 1, pattern, part);
  }
  if (at == path.size() || (path[at][0] == '.' && pattern[part][0] != '.')) return false;
  return match_component(path[at], pattern[part]) && simple(path, at + 1, pattern, part + 1);
}

// `*` and literal bytes only.
bool simple_star(std::string_view name, std::string_view pattern) {
  if (pattern.empty()) return name.empty();
  if (pattern[0] != '*') {
    return !name.empty() && name[0] == pattern[0] && simple_star(name.substr(1), pattern.substr(1));
  }
  return simple_star(name, pattern.substr(1)) ||
         (!name.empty() && simple_star(name.substr(1), pattern));
}

bool is_ascii(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string input(data, data + size);
  const std::size_t nul = std::min(input.find('\0'), input.size());
  const std::string pattern = input.substr(0, nul);
  // No path that a walk can reach is longer: PATH_MAX and one name.
  const std::string path = input.substr(std::min(nul + 1, input.size()), 4096 + 255);

  const auto expanded = expand_braces(pattern);
  if (expanded) {
    if (expanded->empty() || expanded->size() > kMaxExpansions) broken("the number of patterns");
    std::size_t bytes = 0;
    for (const std::string& text : *expanded) bytes += text.size();
    if (bytes > kMaxExpandedBytes) broken("the size of the patterns");
  }
  const auto compiled = GlobPattern::compile(pattern);
  if (!compiled) {
    if (compiled.error().code != Code::invalid_pattern &&
        compiled.error().code != Code::pattern_too_broad) {
      broken("the error");
    }
    return 0;
  }
  const bool matched = compiled->matches(path);
  const auto ordinary = GlobPattern::compile(pattern, GlobPattern::Dots::are_ordinary);
  if (!ordinary) broken("dots decide about validity");
  if (matched && !ordinary->matches(path)) broken("ordinary dots match less");
  if (pattern.size() > 48 || path.size() > 48) return 0;

  const auto path_parts = split(path);
  bool expected = false;
  for (const std::string& text : *expanded) {
    if (pattern.find('/') != std::string::npos) {
      const auto parts = split(text);
      const bool only_directories = text.ends_with('/') && (parts.empty() || parts.back() != "**");
      if (!only_directories && simple(path_parts, 0, parts, 0)) expected = true;
    } else {
      const std::string name = path.substr(path.rfind('/') + 1);
      if (name.starts_with('.') && !text.starts_with('.')) continue;
      if (match_component(name, text)) expected = true;
      if (text.find_first_of("?[") == std::string::npos && name.size() < 24 && text.size() < 24 &&
          is_ascii(name) && is_ascii(text) &&
          match_component(name, text) != simple_star(name, text)) {
        broken("a pattern of stars and letters");
      }
    }
  }
  if (matched != expected) broken("the match");
  return 0;
}
