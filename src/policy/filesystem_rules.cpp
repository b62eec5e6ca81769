#include "policy/filesystem_rules.h"

#include <algorithm>

#include "policy/json_reader.h"
#include "policy/path_checks.h"
#include "policy/paths.h"
#include "policy/sizes.h"
#include "policy/words.h"

namespace sandy::policy {
namespace {

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
    if (auto ok = check_paths(out_, caller_, out_); !ok) return std::unexpected(ok.error());
    merge_rules();
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
      workspace.path = std::move(*path);
      workspace.path_key = draft.path->key;
    }
    if (draft.mount) {
      auto mount = sandbox_path(*draft.mount);
      if (!mount) return std::unexpected(mount.error());
      // At its own path it is mounted where that path leads. Elsewhere there is nothing to ask.
      if (has_dot_dot(*mount) && *mount != workspace.path) {
        return fail(quoted(draft.mount->key, draft.mount->value),
                    "a directory that is made for the mount can't be named with \"..\"",
                    "write the path without \"..\"");
      }
      workspace.mount = std::move(*mount);
      workspace.mount_key = draft.mount->key;
    }
    return {};
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
    out_.rules.push_back({std::move(*path), access, text.key});
    return {};
  }

  // Sorts, and leaves each path once: those that are the same say the same.
  void merge_rules() {
    std::ranges::stable_sort(out_.rules, {}, &PathRule::path);
    const auto again = std::ranges::unique(out_.rules, [](const PathRule& a, const PathRule& b) {
      return a.path == b.path && a.access == b.access;
    });
    out_.rules.erase(again.begin(), again.end());
    // A write rule for a workspace at its own path says the same twice.
    const Workspace& workspace = out_.workspace;
    std::erase_if(out_.rules, [&](const PathRule& rule) {
      return rule.access == Access::write && workspace.mode == WorkspaceMode::bind &&
             rule.path == workspace.path && rule.path == workspace.mount;
    });
  }

  const FilesystemDraft& draft_;
  const Caller& caller_;
  Filesystem out_;
};

}  // namespace

Result<Filesystem> check_filesystem(const FilesystemDraft& draft, const Caller& caller) {
  return FilesystemChecker(draft, caller).check();
}

}  // namespace sandy::policy
