#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "agent/files/glob_match.h"

namespace sandy::files {
namespace {

// The index of the "}" that closes the "{" at `open`, or npos.
std::size_t group_end(std::string_view pattern, std::size_t open) {
  std::size_t depth = 0;
  for (std::size_t i = open; i < pattern.size(); ++i) {
    if (pattern[i] == '{') ++depth;
    if (pattern[i] == '}' && --depth == 0) return i;
  }
  return std::string_view::npos;
}

// The parts between the commas that are in no inner group.
std::vector<std::string_view> alternatives(std::string_view body) {
  std::vector<std::string_view> parts;
  std::size_t depth = 0;
  std::size_t start = 0;
  for (std::size_t i = 0; i < body.size(); ++i) {
    if (body[i] == '{') ++depth;
    if (body[i] == '}') --depth;  // balanced: group_end saw to it
    if (body[i] == ',' && depth == 0) {
      parts.push_back(body.substr(start, i - start));
      start = i + 1;
    }
  }
  parts.push_back(body.substr(start));
  return parts;
}

struct Pending {
  std::string text;
  std::size_t done = 0;  // bytes at its start that hold no group any more
};

}  // namespace

FileResult<std::vector<std::string>> expand_braces(std::string_view pattern) {
  const auto too_broad = [] {
    return file_error(Code::pattern_too_broad, "the pattern's braces expand to too many patterns");
  };
  if (pattern.size() > kMaxExpandedBytes) return too_broad();
  std::vector<std::string> out;
  std::vector<Pending> pending;  // a stack: the next in order is at its end
  pending.push_back({std::string(pattern), 0});
  std::size_t bytes = pattern.size();
  while (!pending.empty()) {
    Pending item = std::move(pending.back());
    pending.pop_back();
    bool split = false;
    while (!split) {
      const std::size_t open = item.text.find('{', item.done);
      const std::size_t close = open == std::string::npos ? open : group_end(item.text, open);
      if (close == std::string::npos) break;
      const std::string_view text = item.text;
      const auto parts = alternatives(text.substr(open + 1, close - open - 1));
      if (parts.size() < 2) {
        item.done = close + 1;  // a group of one is literal, with all that is in it
        continue;
      }
      // Each pending pattern makes at least one, so their number is a lower bound of the result's.
      if (out.size() + pending.size() + parts.size() > kMaxExpansions) return too_broad();
      for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
        Pending next{std::string(text.substr(0, open)), open};
        next.text.append(*part).append(text.substr(close + 1));
        bytes += next.text.size();
        if (bytes > kMaxExpandedBytes) return too_broad();
        pending.push_back(std::move(next));
      }
      bytes -= text.size();
      split = true;
    }
    if (!split) out.push_back(std::move(item.text));
  }
  return out;
}

}  // namespace sandy::files
