#include <algorithm>

#include "host/path_resolver.h"
#include "plan/path_text.h"
#include "verify/trial.h"

namespace sandy::verify {

std::vector<std::string> Setting::inside(const std::string& path) const {
  std::vector<std::string> out{path};
  if (!path.starts_with('/')) return out;  // an abstract socket
  const auto resolved = host::resolve_path(path);
  if (!resolved) return out;
  const auto add = [&](std::string one) {
    if (std::ranges::find(out, one) == out.end()) out.push_back(std::move(one));
  };
  add(resolved->canonical);
  for (const auto& mount : plan.mounts) {
    if (mount.kind != plan::MountStep::Kind::bind && mount.kind != plan::MountStep::Kind::ro_bind) continue;
    const auto& slot = plan.slots.at(mount.slot);
    if (slot.kind != plan::FdSlot::Kind::host_path || !plan::is_at_or_below(resolved->canonical, slot.text)) continue;
    add(plan::moved(resolved->canonical, slot.text, mount.dest));
  }
  return out;
}

}  // namespace sandy::verify
