#include "plan/resolved_paths.h"

#include <vector>

#include "plan/path_text.h"
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

// What decides about the host files at and below a path.
struct Tree {
  std::string path;  // canonical
  policy::Access access;
  std::string key;
};

std::vector<Tree> trees(const policy::Filesystem& canonical) {
  std::vector<Tree> out;
  const policy::Workspace& workspace = canonical.workspace;
  if (workspace.mode == policy::WorkspaceMode::bind) out.push_back({workspace.path, policy::Access::write, workspace.path_key});
  for (const auto& rule : canonical.rules) out.push_back({rule.path, rule.access, rule.key});
  return out;
}

// A link that commands can replace would lead the next start wherever they like.
Result<void> check_links(const std::string& written, const std::string& key, const HostPath& path, const std::vector<Tree>& trees) {
  for (const Symlink& link : path.links) {
    const Tree* decides = nullptr;  // the most specific one
    for (const Tree& tree : trees) {
      if (is_at_or_below(link.path, tree.path) && (decides == nullptr || tree.path.size() > decides->path.size())) decides = &tree;
    }
    if (decides == nullptr || decides->access != policy::Access::write) continue;
    return fail(key + ": \"" + printable(written) + "\"",
                "\"" + printable(link.path) + "\" on its way is a symbolic link that commands can change, as " + decides->key +
                    " makes it writable: the next start would follow it anywhere",
                "name \"" + printable(path.canonical) + "\", where it leads now, if that is what is meant");
  }
  return {};
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
  if (auto r = policy::check_paths(*canonical, resolved_caller(facts), filesystem); !r) return r;
  const std::vector<Tree> all = trees(*canonical);
  const policy::Workspace& workspace = filesystem.workspace;
  if (workspace.mode == policy::WorkspaceMode::bind) {
    if (auto r = check_links(workspace.path, workspace.path_key, facts.paths.at(workspace.path), all); !r) return r;
  }
  for (const auto& rule : filesystem.rules) {
    if (auto r = check_links(rule.path, rule.key, facts.paths.at(rule.path), all); !r) return r;
  }
  return {};
}

}  // namespace sandy::plan
