#include "agent/files/glob_match.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "agent/files/utf8.h"

namespace sandy::files {
namespace {

struct Unit {
  char32_t value = 0;
  std::size_t length = 1;
};

// The next character; a byte that belongs to none gets a value that no character has.
Unit unit_at(std::string_view text, std::size_t at) {
  const Utf8Step step = utf8_step(text.substr(at));
  if (step.kind == Utf8Step::valid) return {step.code_point, step.length};
  return {0xDC00U + static_cast<std::uint8_t>(text[at]), 1};
}

// The index of the "]" that closes the "[" at `open`, or npos. A "]" that comes first is a member.
std::size_t class_end(std::string_view pattern, std::size_t open) {
  std::size_t first = open + 1;
  if (first < pattern.size() && (pattern[first] == '!' || pattern[first] == '^')) ++first;
  if (first < pattern.size() && pattern[first] == ']') ++first;
  return pattern.find(']', first);
}

// `body` is what is between the brackets.
bool in_class(char32_t value, std::string_view body) {
  bool negated = false;
  if (!body.empty() && (body[0] == '!' || body[0] == '^')) {
    negated = true;
    body.remove_prefix(1);
  }
  bool found = false;
  for (std::size_t at = 0; at < body.size() && !found;) {
    const Unit low = unit_at(body, at);
    at += low.length;
    Unit high = low;
    if (at + 1 < body.size() && body[at] == '-') {
      high = unit_at(body, at + 1);
      at += 1 + high.length;
    }
    found = low.value <= value && value <= high.value;
  }
  return found != negated;
}

std::vector<std::string> split_components(std::string_view pattern) {
  std::vector<std::string> out;
  while (!pattern.empty()) {
    const std::size_t slash = std::min(pattern.find('/'), pattern.size());
    const std::string_view part = pattern.substr(0, slash);
    const bool repeats = part == "**" && !out.empty() && out.back() == "**";
    if (!part.empty() && !repeats) out.emplace_back(part);
    pattern.remove_prefix(std::min(slash + 1, pattern.size()));
  }
  return out;
}

// Matches components, with each pair of positions looked at once: backtracking over several "**" is
// exponential otherwise.
class PathMatcher {
 public:
  PathMatcher(const std::vector<std::string_view>& path, const std::vector<std::string>& pattern)
      : path_(path), pattern_(pattern), failed_((path.size() + 1) * (pattern.size() + 1)) {}

  // Recursion is only as deep as there are "**" in the pattern that the path can still satisfy.
  bool from(std::size_t at, std::size_t part) {
    const std::size_t start = at * (pattern_.size() + 1) + part;
    if (failed_[start]) return false;
    const bool matched = compute(at, part);
    if (!matched) failed_[start] = true;
    return matched;
  }

 private:
  static bool hidden(std::string_view name) { return name.starts_with('.'); }

  bool compute(std::size_t at, std::size_t part) {
    for (; part < pattern_.size(); ++at, ++part) {
      if (pattern_[part] == "**") return any_depth(at, part + 1);
      if (at == path_.size()) return false;
      if (hidden(path_[at]) && !pattern_[part].starts_with('.')) return false;
      if (!match_component(path_[at], pattern_[part])) return false;
    }
    return at == path_.size();
  }

  bool any_depth(std::size_t at, std::size_t part) {
    if (part == pattern_.size()) {
      return at < path_.size() &&
             std::none_of(path_.begin() + static_cast<std::ptrdiff_t>(at), path_.end(), hidden);
    }
    while (true) {
      if (from(at, part)) return true;
      if (at == path_.size() || hidden(path_[at])) return false;
      ++at;
    }
  }

  const std::vector<std::string_view>& path_;
  const std::vector<std::string>& pattern_;
  std::vector<bool> failed_;
};

}  // namespace

bool match_component(std::string_view name, std::string_view pattern) {
  std::size_t at = 0;
  std::size_t part = 0;
  std::size_t star = std::string_view::npos;  // behind the last "*"
  std::size_t star_at = 0;                    // where what follows it was tried
  while (at < name.size()) {
    bool matched = false;
    if (part < pattern.size()) {
      const Unit unit = unit_at(name, at);
      const char c = pattern[part];
      const std::size_t close = c == '[' ? class_end(pattern, part) : std::string_view::npos;
      if (c == '*') {
        star = ++part;
        star_at = at;
        continue;
      }
      if (c == '?') {
        matched = true;
        ++part;
      } else if (close != std::string_view::npos) {
        matched = in_class(unit.value, pattern.substr(part + 1, close - part - 1));
        part = close + 1;
      } else {
        const Unit literal = unit_at(pattern, part);
        matched = unit.value == literal.value;
        part += literal.length;
      }
      at += unit.length;
    }
    if (matched) continue;
    if (star == std::string_view::npos) return false;
    star_at += unit_at(name, star_at).length;
    at = star_at;
    part = star;
  }
  while (part < pattern.size() && pattern[part] == '*') ++part;
  return part == pattern.size();
}

FileResult<GlobPattern> GlobPattern::compile(std::string_view pattern, Dots dots) {
  std::string slashes(pattern);
  std::ranges::replace(slashes, '\\', '/');
  const auto parts = split_components(slashes);
  if (std::ranges::find(parts, "..") != parts.end()) {
    return file_error(Code::invalid_pattern, "a pattern can't have \"..\"");
  }
  auto expanded = expand_braces(pattern);
  if (!expanded) return std::unexpected(expanded.error());
  GlobPattern out;
  out.has_slash_ = pattern.find('/') != std::string_view::npos;
  out.dots_ = dots;
  for (std::string& text : *expanded) {
    Candidate candidate;
    if (!out.has_slash_) {
      candidate.text = std::move(text);
    } else {
      candidate.components = split_components(text);
      const bool any_depth = !candidate.components.empty() && candidate.components.back() == "**";
      if (text.ends_with('/') && !any_depth) continue;  // only directories
    }
    out.candidates_.push_back(std::move(candidate));
  }
  return out;
}

bool GlobPattern::matches(std::string_view path) const {
  if (!has_slash_) {
    const std::size_t slash = path.rfind('/');
    const std::string_view name = slash == std::string_view::npos ? path : path.substr(slash + 1);
    return std::ranges::any_of(candidates_, [&](const Candidate& candidate) {
      if (dots_ == Dots::need_a_dot && name.starts_with('.') && !candidate.text.starts_with('.')) {
        return false;
      }
      return match_component(name, candidate.text);
    });
  }
  std::vector<std::string_view> parts;
  while (!path.empty()) {
    const std::size_t slash = std::min(path.find('/'), path.size());
    if (slash > 0) parts.push_back(path.substr(0, slash));
    path.remove_prefix(std::min(slash + 1, path.size()));
  }
  return std::ranges::any_of(candidates_, [&](const Candidate& candidate) {
    const std::size_t needed = static_cast<std::size_t>(
        std::ranges::count_if(candidate.components, [](const auto& part) { return part != "**"; }));
    return needed <= parts.size() && PathMatcher(parts, candidate.components).from(0, 0);
  });
}

}  // namespace sandy::files
