// Paths as text, for those who arrange them: no look at any file.
#pragma once

#include <algorithm>
#include <deque>
#include <string>
#include <string_view>

namespace sandy::plan {

inline bool is_below(std::string_view path, std::string_view parent) {
  if (parent == "/") return path.size() > 1;
  return path.size() > parent.size() && path.starts_with(parent) && path[parent.size()] == '/';
}

inline bool is_at_or_below(std::string_view path, std::string_view parent) { return path == parent || is_below(path, parent); }

inline std::string parent_of(const std::string& path) {
  const auto slash = path.rfind('/');
  return slash == 0 ? "/" : path.substr(0, slash);
}

// The names in a path, "." and ".." among them.
inline std::deque<std::string> components(std::string_view path) {
  std::deque<std::string> out;
  while (!path.empty()) {
    const auto slash = std::min(path.find('/'), path.size());
    if (slash > 0) out.emplace_back(path.substr(0, slash));
    path.remove_prefix(std::min(slash + 1, path.size()));
  }
  return out;
}

inline std::string first_name(std::string_view path) { return std::string(path.substr(1, path.find('/', 1) - 1)); }

// "/a" sorts before "/a/b", and that before "/a-b": by components.
struct ByComponents {
  bool operator()(const std::string& a, const std::string& b) const {
    return std::ranges::lexicographical_compare(a, b, [](char x, char y) {
      const auto rank = [](char c) { return c == '/' ? -1 : static_cast<int>(static_cast<unsigned char>(c)); };
      return rank(x) < rank(y);
    });
  }
};

// `path`, which is at or below `from`, as it is called where `to` stands for `from`.
inline std::string moved(const std::string& path, const std::string& from, const std::string& to) {
  const std::string rest = from == "/" ? (path == "/" ? "" : path) : path.substr(from.size());
  return to == "/" ? (rest.empty() ? "/" : rest) : to + rest;
}

}  // namespace sandy::plan
