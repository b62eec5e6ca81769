#include "agent/files/list.h"

#include <dirent.h>
#include <fcntl.h>

#include <algorithm>
#include <utility>

#include "agent/files/directory.h"

namespace sandy::files {

FileResult<std::vector<ListEntry>> list(const std::string& path, std::stop_token stop) {
  auto directory = open_search_root(path);
  if (!directory) return std::unexpected(directory.error());
  auto entries = read_directory(std::move(*directory), stop);
  if (!entries) return std::unexpected(entries.error());
  std::vector<ListEntry> out;
  out.reserve(entries->size());
  for (DirectoryEntry& entry : *entries)
    out.push_back({std::move(entry.name), entry.type == DT_DIR});
  std::sort(out.begin(), out.end(),
            [](const ListEntry& a, const ListEntry& b) { return a.name < b.name; });
  return out;
}

}  // namespace sandy::files
