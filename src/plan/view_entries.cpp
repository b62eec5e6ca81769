#include "plan/view_entries.h"

#include <algorithm>

namespace sandy::plan {

using policy::Access;
using What = Entry::What;

void ViewEntries::add_path(const std::string& dest, Access access, const HostPath& path, const std::string& key) {
  Entry entry;
  entry.what = access == Access::deny ? What::hidden : What::exposed;
  entry.access = access;
  entry.host = path.canonical;
  entry.type = path.type;
  entry.key = key;
  const auto [it, inserted] = entries_.emplace(dest, entry);
  if (!inserted && (it->second.what == What::made || it->second.key.empty())) it->second = entry;
}

void ViewEntries::add_made(MountStep step) {
  Entry entry;
  entry.step = std::move(step);
  const std::string dest = entry.step.dest;
  if (const auto it = entries_.find(dest); it != entries_.end() && it->second.what == What::hidden) entries_.erase(it);
  entries_.emplace(dest, std::move(entry));
}

const ViewEntries::Item* ViewEntries::exposure_above(const std::string& dest) const {
  for (std::string path = dest; path != "/";) {
    path = parent_of(path);
    const auto it = entries_.find(path);
    if (it != entries_.end()) return it->second.what == What::exposed ? &*it : nullptr;
  }
  return nullptr;
}

bool ViewEntries::is_covered(const std::string& dest) const {
  for (std::string path = dest; path != "/";) {
    path = parent_of(path);
    const auto it = entries_.find(path);
    if (it != entries_.end()) return it->second.what != What::made || it->second.step.kind == MountStep::Kind::tmpfs;
  }
  return false;
}

bool ViewEntries::has_exposed_below(const std::string& dest) const {
  return std::ranges::any_of(entries_, [&](const auto& item) { return is_below(item.first, dest) && item.second.what == What::exposed; });
}

bool ViewEntries::is_passed(const std::string& dest) const {
  return std::ranges::any_of(entries_, [&](const auto& item) { return is_below(item.first, dest) && item.second.what != What::hidden; });
}

}  // namespace sandy::plan
