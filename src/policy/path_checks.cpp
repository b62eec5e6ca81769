#include "policy/path_checks.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <optional>

#include "policy/broad_workspace.h"
#include "policy/paths.h"
#include "policy/sizes.h"

namespace sandy::policy {
namespace {

constexpr std::array<std::string_view, 3> kFreshTrees{"/proc", "/dev", "/sys"};

// Where a workspace would hide what the sandbox itself is made of; also above them.
constexpr std::array<std::string_view, 19> kSystemMounts{
    "/usr", "/etc", "/bin",     "/sbin", "/lib", "/lib32", "/lib64",   "/libx32", "/boot", "/proc",
    "/sys", "/dev", "/dev/shm", "/run",  "/tmp", "/var",   "/var/tmp", "/home",   "/root"};

// Trees of the sandbox that are read-only or the kernel's, so that no mount point can be made in
// them.
constexpr std::array<std::string_view, 12> kClosedTrees{"/usr",  "/etc",   "/bin",   "/sbin",
                                                        "/lib",  "/lib32", "/lib64", "/libx32",
                                                        "/boot", "/proc",  "/sys",   "/dev"};

constexpr char kBroadFix[] =
    "name a directory of the project, or set filesystem.unsafe_broad_workspace if you accept the "
    "risk";
constexpr char kMountFix[] = "leave it out to have /workspace, or choose a directory of its own";

std::string_view access_word(Access access) {
  return access == Access::read ? "read" : access == Access::write ? "write" : "deny";
}

std::optional<std::string_view> fresh_tree(std::string_view path) {
  for (const std::string_view tree : kFreshTrees) {
    if (is_within(path, tree)) return tree;
  }
  return std::nullopt;
}

// `key: "written"`, and what it leads to where that is another path.
std::string named(const std::string& key, const std::string& written, const std::string& path) {
  const std::string out = quoted(key, written);
  return path == written ? out : out + ", which is \"" + printable(path) + "\"";
}

class PathChecker {
 public:
  PathChecker(const Filesystem& filesystem, const Caller& caller, const Filesystem& written)
      : filesystem_(filesystem),
        workspace_(filesystem.workspace),
        caller_(caller),
        written_(written) {}

  Result<void> check() const {
    if (is_bind() && is_known(workspace_.path)) {
      if (auto ok = workspace(); !ok) return ok;
    }
    if (is_known(workspace_.mount)) {
      if (auto ok = mount(); !ok) return ok;
    }
    for (std::size_t i = 0; i < filesystem_.rules.size(); ++i) {
      if (!is_known(filesystem_.rules[i].path)) continue;
      if (auto ok = rule(i); !ok) return ok;
      if (auto ok = rule_and_workspace(i); !ok) return ok;
    }
    return rule_and_rule();
  }

 private:
  static bool is_known(const std::string& path) { return !has_dot_dot(path); }
  bool is_bind() const { return workspace_.mode == WorkspaceMode::bind; }

  std::string name_of(std::size_t rule) const {
    return named(written_.rules[rule].key, written_.rules[rule].path, filesystem_.rules[rule].path);
  }

  Result<void> workspace() const {
    const std::string what =
        named(workspace_.path_key, written_.workspace.path, workspace_.path);
    const bool shared_memory =
        is_within(workspace_.path, "/dev/shm") && workspace_.path != "/dev/shm";
    if (const auto tree = fresh_tree(workspace_.path); tree && !shared_memory) {
      return fail(what,
                  "the host's " + std::string(*tree) +
                      " gives control over the host, so it is never a workspace",
                  "name a directory of the project");
    }
    return writable(what, workspace_.path);
  }

  Result<void> mount() const {
    const std::string what =
        named(workspace_.mount_key, written_.workspace.mount, workspace_.mount);
    for (const std::string_view system : kSystemMounts) {
      if (!is_within(system, workspace_.mount)) continue;
      return fail(what,
                  "a workspace there would hide the sandbox's own " + std::string(system),
                  kMountFix);
    }
    // A directory that is already there on the host needs no new mount point.
    if (workspace_.mount == workspace_.path && !fresh_tree(workspace_.mount)) return {};
    for (const std::string_view tree : kClosedTrees) {
      if (!is_within(workspace_.mount, tree)) continue;
      return fail(what, "no directory can be made in the sandbox's " + std::string(tree),
                  kMountFix);
    }
    return {};
  }

  Result<void> writable(const std::string& what, const std::string& path) const {
    if (filesystem_.unsafe_broad_workspace) return {};
    const auto reason = broad_workspace_reason(path, caller_);
    if (!reason) return {};
    return fail(what, "too broad to be writable: " + *reason, kBroadFix);
  }

  Result<void> rule(std::size_t i) const {
    const PathRule& rule = filesystem_.rules[i];
    if (const auto tree = fresh_tree(rule.path)) {
      return fail(
          name_of(i),
          std::string(*tree) +
              " is made fresh for each sandbox and never the host's, so no rule applies to it",
          "leave the rule out");
    }
    if (rule.access != Access::deny && !caller_.state_dir.empty() &&
        is_within(rule.path, normalized(caller_.state_dir))) {
      return fail(name_of(i),
                  "Sandy's own state, with its control sockets, never reaches a sandbox",
                  "leave the rule out");
    }
    return rule.access == Access::write ? writable(name_of(i), rule.path) : Result<void>();
  }

  Result<void> rule_and_workspace(std::size_t i) const {
    const PathRule& rule = filesystem_.rules[i];
    const bool bind = is_bind() && is_known(workspace_.path);
    const bool mount = is_known(workspace_.mount);
    const bool at_mount = mount && rule.path == workspace_.mount;
    const bool at_path = bind && rule.path == workspace_.path;
    if (rule.access == Access::deny) {
      const bool hides = (mount && is_within(workspace_.mount, rule.path)) ||
                         (bind && is_within(workspace_.path, rule.path));
      if (!hides) return {};
      return fail(
          name_of(i),
          at_mount || at_path ? "the workspace itself can't be denied" : "the workspace is in it",
          "deny what is in it and must stay hidden, or move the workspace");
    }
    if (at_path && rule.access == Access::read) {
      return fail(name_of(i),
                  "read contradicts " + workspace_.path_key +
                      ", which makes the same directory the writable workspace",
                  "keep one of the two");
    }
    if (at_mount && !at_path) {
      return fail(name_of(i), "the workspace is mounted there, and would hide it",
                  "set filesystem.workspace.mount to another directory");
    }
    return {};
  }

  // Two rules for one path must say the same.
  Result<void> rule_and_rule() const {
    std::vector<std::size_t> order(filesystem_.rules.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::stable_sort(order, {}, [&](std::size_t i) -> const std::string& {
      return filesystem_.rules[i].path;
    });
    for (std::size_t n = 1; n < order.size(); ++n) {
      const PathRule& first = filesystem_.rules[order[n - 1]];
      const PathRule& second = filesystem_.rules[order[n]];
      if (first.path != second.path || first.access == second.access) continue;
      return fail(name_of(order[n]),
                  std::string(access_word(second.access)) + " contradicts " +
                      quoted(first.key, written_.rules[order[n - 1]].path) + ", which says " +
                      std::string(access_word(first.access)) + " for the same path",
                  "keep one of the two");
    }
    return {};
  }

  const Filesystem& filesystem_;
  const Workspace& workspace_;
  const Caller& caller_;
  const Filesystem& written_;
};

}  // namespace

Result<void> check_paths(const Filesystem& filesystem, const Caller& caller,
                         const Filesystem& written) {
  return PathChecker(filesystem, caller, written).check();
}

}  // namespace sandy::policy
