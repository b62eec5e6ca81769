#include "plan/made_links.h"

#include <algorithm>

namespace sandy::plan {
namespace {

constexpr int kMaxLinks = 40;  // as the kernel

}  // namespace

void MadeLinks::add(const HostPath& path) {
  links_.insert(links_.end(), path.links.begin(), path.links.end());
  passed_.insert(passed_.end(), path.passed.begin(), path.passed.end());
}

std::string MadeLinks::resolve(const std::string& path) const {
  auto rest = components(path);
  std::string at;  // "" is the root
  for (int followed = 0; !rest.empty();) {
    const std::string name = std::move(rest.front());
    rest.pop_front();
    if (name == ".") continue;
    if (name == "..") {
      at = at.substr(0, at.empty() ? 0 : at.rfind('/'));
      continue;
    }
    const auto link = std::ranges::find(links_, at + "/" + name, &Symlink::path);
    if (link == links_.end()) {
      at += "/" + name;
      continue;
    }
    if (++followed > kMaxLinks) return path;
    if (link->target.starts_with('/')) at.clear();
    const auto more = components(link->target);
    rest.insert(rest.begin(), more.begin(), more.end());
  }
  return at.empty() ? "/" : at;
}

void MadeLinks::make(ViewEntries& entries) const {
  for (const Symlink& link : links_) {
    if (entries.exposure_above(link.path) == nullptr && !entries.contains(link.path)) {
      entries.add_made({.kind = MountStep::Kind::symlink, .dest = link.path, .target = link.target});
    }
  }
  for (const std::string& directory : passed_) {
    // One that has something in it is made anyway, and one that is denied can't be passed.
    if (entries.exposure_above(directory) == nullptr && !entries.contains(directory) && !entries.is_passed(directory)) {
      entries.add_made({.kind = MountStep::Kind::directory, .dest = directory});
    }
  }
}

}  // namespace sandy::plan
