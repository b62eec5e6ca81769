#include "plan/resolved_paths.h"

#include "policy/path_checks.h"

namespace sandy::plan {
namespace {

// The same policy with canonical paths.
Result<policy::Filesystem> resolved(policy::Filesystem filesystem, const HostFacts& facts) {
  policy::Workspace& workspace = filesystem.workspace;
  if (workspace.mode == policy::WorkspaceMode::bind) {
    const auto path = fact_of(facts, workspace.path, workspace.path_key);
    if (!path) return std::unexpected(path.error());
    if (workspace.mount == workspace.path) workspace.mount = (*path)->canonical;
    workspace.path = (*path)->canonical;
  }
  for (auto& rule : filesystem.rules) {
    const auto path = fact_of(facts, rule.path, rule.key);
    if (!path) return std::unexpected(path.error());
    rule.path = (*path)->canonical;
  }
  return filesystem;
}

policy::Caller resolved_caller(const HostFacts& facts) {
  const auto home = facts.paths.find(facts.home);
  return {.home = home == facts.paths.end() ? facts.home : home->second.canonical, .cwd = "", .state_dir = facts.state_dir.canonical, .uid = facts.uid};
}

}  // namespace

Result<const HostPath*> fact_of(const HostFacts& facts, const std::string& path, const std::string& key) {
  const auto it = facts.paths.find(path);
  if (it == facts.paths.end()) return fail(key + ": \"" + printable(path) + "\"", "was not looked up on this host");
  return &it->second;
}

Result<void> check_resolved(const policy::Filesystem& filesystem, const HostFacts& facts) {
  const auto canonical = resolved(filesystem, facts);
  if (!canonical) return std::unexpected(canonical.error());
  return policy::check_paths(*canonical, resolved_caller(facts), filesystem);
}

}  // namespace sandy::plan
