#include "agent/files/workspace_path.h"

#include <algorithm>
#include <vector>

namespace sandy::files {
namespace {

// Without "" and ".".
std::vector<std::string_view> components(std::string_view path) {
  std::vector<std::string_view> out;
  while (!path.empty()) {
    const std::size_t slash = std::min(path.find('/'), path.size());
    const std::string_view part = path.substr(0, slash);
    if (!part.empty() && part != ".") out.push_back(part);
    path.remove_prefix(std::min(slash + 1, path.size()));
  }
  return out;
}

bool says_directory(std::string_view path) {
  return path.ends_with('/') || path.ends_with("/.") || path == ".";
}

}  // namespace

std::string map_path(std::string_view path, std::string_view workspace,
                     std::span<const std::string> root_names) {
  if (path.empty()) return {};
  while (workspace.ends_with('/')) workspace.remove_suffix(1);
  std::vector<std::string_view> parts = components(path);
  std::string out;
  if (path[0] != '/') {
    out = workspace;
  } else {
    // At the root ".." is the root.
    parts.erase(parts.begin(), std::ranges::find_if(parts, [](auto part) { return part != ".."; }));
    if (parts.empty()) return "/";
    const std::vector<std::string_view> home = components(workspace);
    const bool own = std::ranges::find(root_names, parts[0]) != root_names.end() ||
                     (!home.empty() && home[0] == parts[0]);
    if (!own) {
      out = workspace;
      std::vector<std::string_view> kept;
      std::size_t depth = 0;
      for (const std::string_view part : parts) {
        if (part != "..") {
          ++depth;
        } else if (depth == 0) {
          continue;
        } else {
          --depth;
        }
        kept.push_back(part);
      }
      parts = std::move(kept);
    }
  }
  for (const std::string_view part : parts) out.append("/").append(part);
  if (out.empty() || says_directory(path)) out += '/';
  return out;
}

}  // namespace sandy::files
