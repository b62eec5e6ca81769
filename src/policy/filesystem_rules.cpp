#include "policy/filesystem_rules.h"

#include <algorithm>
#include <array>

#include "policy/broad_workspace.h"
#include "policy/json_reader.h"
#include "policy/paths.h"
#include "policy/sizes.h"
#include "policy/words.h"

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

std::string_view access_word(Access access) {
  return access == Access::read ? "read" : access == Access::write ? "write" : "deny";
}

class FilesystemChecker {
 public:
  FilesystemChecker(const FilesystemDraft& draft, const Caller& caller)
      : draft_(draft), caller_(caller) {}

  Result<Filesystem> check() {
    out_.unsafe_broad_workspace =
        draft_.unsafe_broad_workspace && draft_.unsafe_broad_workspace->value;
    if (auto ok = workspace(); !ok) return std::unexpected(ok.error());
    if (draft_.read.size() + draft_.write.size() + draft_.deny.size() > kMaxRules) {
      return fail("filesystem", "more than " + std::to_string(kMaxRules) + " rules");
    }
    for (const auto& [list, access] :
         {std::pair{&draft_.read, Access::read}, std::pair{&draft_.write, Access::write},
          std::pair{&draft_.deny, Access::deny}}) {
      for (const Text& text : *list) {
        if (auto ok = rule(text, access); !ok) return std::unexpected(ok.error());
      }
    }
    if (auto ok = merge_rules(); !ok) return std::unexpected(ok.error());
    if (auto ok = rules_and_workspace(); !ok) return std::unexpected(ok.error());
    return std::move(out_);
  }

 private:
  Result<void> workspace() {
    const WorkspaceDraft& draft = draft_.workspace;
    Workspace& workspace = out_.workspace;
    workspace.mode = draft.path ? WorkspaceMode::bind : WorkspaceMode::private_;
    if (draft.mode) {
      const auto mode = choose(*draft.mode, {"private", "bind"});
      if (!mode) return std::unexpected(mode.error());
      workspace.mode = *mode == 1 ? WorkspaceMode::bind : WorkspaceMode::private_;
    }
    if (workspace.mode == WorkspaceMode::bind && !draft.path) {
      return fail(quoted(draft.mode->key, draft.mode->value),
                  "a bound workspace needs a host directory", "set filesystem.workspace.path");
    }
    if (workspace.mode == WorkspaceMode::private_ && draft.path) {
      return fail(quoted(draft.path->key, draft.path->value),
                  "a private workspace is a new, empty directory and takes no path",
                  "leave the path out, or set filesystem.workspace.mode to \"bind\"");
    }
    if (draft.path) {
      auto path = host_path(*draft.path, caller_);
      if (!path) return std::unexpected(path.error());
      const bool shared_memory = is_within(*path, "/dev/shm") && *path != "/dev/shm";
      if (const auto tree = fresh_tree(*path); tree && !shared_memory) {
        return fail(quoted(draft.path->key, draft.path->value),
                    "the host's " + std::string(*tree) +
                        " gives control over the host, so it is never a workspace");
      }
      if (auto ok = writable(*draft.path, *path); !ok) return ok;
      workspace.path = std::move(*path);
      workspace_key_ = draft.path->key;
    }
    if (draft.mount) {
      auto mount = sandbox_path(*draft.mount);
      if (!mount) return std::unexpected(mount.error());
      workspace.mount = std::move(*mount);
      return check_mount(*draft.mount);
    }
    return {};
  }

  Result<void> check_mount(const Text& text) const {
    const Workspace& workspace = out_.workspace;
    for (const std::string_view system : kSystemMounts) {
      if (!is_within(system, workspace.mount)) continue;
      return fail(quoted(text.key, text.value),
                  "a workspace there would hide the sandbox's own " + std::string(system),
                  "leave it out to have /workspace, or choose a directory of its own");
    }
    // A directory that is already there on the host needs no new mount point.
    if (workspace.mount == workspace.path && !fresh_tree(workspace.mount)) return {};
    for (const std::string_view tree : kClosedTrees) {
      if (!is_within(workspace.mount, tree)) continue;
      return fail(quoted(text.key, text.value),
                  "no directory can be made in the sandbox's " + std::string(tree),
                  "leave it out to have /workspace, or choose a directory of its own");
    }
    return {};
  }

  static std::optional<std::string_view> fresh_tree(std::string_view path) {
    for (const std::string_view tree : kFreshTrees) {
      if (is_within(path, tree)) return tree;
    }
    return std::nullopt;
  }

  Result<void> writable(const Text& text, std::string_view path) const {
    if (out_.unsafe_broad_workspace) return {};
    const auto reason = broad_workspace_reason(path, caller_);
    if (!reason) return {};
    return fail(quoted(text.key, text.value), "too broad to be writable: " + *reason, kBroadFix);
  }

  Result<void> rule(const Text& text, Access access) {
    auto path = host_path(text, caller_);
    if (!path) return std::unexpected(path.error());
    // A pattern taken as a name would match nothing, and a deny rule that matches nothing protects
    // nothing.
    if (!text.literal && text.value.find('*') != std::string::npos) {
      return fail(quoted(text.key, text.value),
                  "patterns are not supported in paths: \"*\" would be a name",
                  "name the directory (a rule holds for all that is in it); for a name that has "
                  "\"*\" write {\"bytes\": \"<base64>\"}");
    }
    if (const auto tree = fresh_tree(*path)) {
      return fail(
          quoted(text.key, text.value),
          std::string(*tree) +
              " is made fresh for each sandbox and never the host's, so no rule applies to it",
          "leave the rule out");
    }
    if (access != Access::deny && !caller_.state_dir.empty() &&
        is_within(*path, normalized(caller_.state_dir))) {
      return fail(quoted(text.key, text.value),
                  "Sandy's own state, with its control sockets, never reaches a sandbox");
    }
    if (access == Access::write) {
      if (auto ok = writable(text, *path); !ok) return ok;
    }
    out_.rules.push_back({std::move(*path), access, text.key});
    return {};
  }

  // Sorts, and leaves each path once.
  Result<void> merge_rules() {
    std::ranges::stable_sort(out_.rules, {}, &PathRule::path);
    std::vector<PathRule> merged;
    for (PathRule& rule : out_.rules) {
      if (merged.empty() || merged.back().path != rule.path) {
        merged.push_back(std::move(rule));
      } else if (merged.back().access != rule.access) {
        return fail(quoted(rule.key, rule.path),
                    std::string(access_word(rule.access)) + " contradicts " + merged.back().key +
                        ", which says " + std::string(access_word(merged.back().access)) +
                        " for the same path",
                    "keep one of the two");
      }
    }
    out_.rules = std::move(merged);
    return {};
  }

  Result<void> rules_and_workspace() {
    const Workspace& workspace = out_.workspace;
    const bool bind = workspace.mode == WorkspaceMode::bind;
    for (const PathRule& rule : out_.rules) {
      const bool at_mount = rule.path == workspace.mount;
      const bool at_path = bind && rule.path == workspace.path;
      if (rule.access == Access::deny) {
        const bool hides =
            is_within(workspace.mount, rule.path) || (bind && is_within(workspace.path, rule.path));
        if (!hides) continue;
        return fail(
            quoted(rule.key, rule.path),
            at_mount || at_path ? "the workspace itself can't be denied" : "the workspace is in it",
            "deny what is in it and must stay hidden, or move the workspace");
      }
      if (at_path && rule.access == Access::read) {
        return fail(quoted(rule.key, rule.path),
                    "read contradicts " + workspace_key_ +
                        ", which makes the same directory the writable workspace",
                    "keep one of the two");
      }
      if (at_mount && !at_path) {
        return fail(quoted(rule.key, rule.path),
                    "the workspace is mounted there, and would hide it",
                    "set filesystem.workspace.mount to another directory");
      }
    }
    // A write rule for a workspace at its own path says the same twice.
    std::erase_if(out_.rules, [&](const PathRule& rule) {
      return bind && rule.path == workspace.path && rule.path == workspace.mount;
    });
    return {};
  }

  const FilesystemDraft& draft_;
  const Caller& caller_;
  Filesystem out_;
  std::string workspace_key_;
};

}  // namespace

Result<Filesystem> check_filesystem(const FilesystemDraft& draft, const Caller& caller) {
  return FilesystemChecker(draft, caller).check();
}

}  // namespace sandy::policy
