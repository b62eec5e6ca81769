#include <algorithm>
#include <map>

#include "host/path_resolver.h"
#include "plan/path_text.h"
#include "verify/explain.h"
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

std::string Setting::shown_by(const std::vector<std::string>& paths, bool writing) const {
  std::map<std::string, std::string> targets;
  const auto add = [&](const std::string& written) {
    if (auto resolved = host::resolve_path(written); resolved && resolved->canonical != written) targets[written] = std::move(resolved->canonical);
  };
  if (policy.filesystem.workspace.mode == policy::WorkspaceMode::bind) add(policy.filesystem.workspace.path);
  for (const auto& rule : policy.filesystem.rules) add(rule.path);
  std::vector<std::string> canonical;
  for (const auto& path : paths) {
    const auto resolved = host::resolve_path(path);
    canonical.push_back(resolved ? resolved->canonical : path);
  }
  return verify::shown_by(policy, canonical, writing, targets);
}

}  // namespace sandy::verify
