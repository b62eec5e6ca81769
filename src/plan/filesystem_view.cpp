#include "plan/filesystem_view.h"

#include <algorithm>

#include "plan/synthetic_etc.h"

namespace sandy::plan {
namespace {

using policy::Access;
using Kind = MountStep::Kind;

constexpr std::uint64_t kDefaultTmpBytes = 1ULL << 30;
constexpr std::uint64_t kHiddenBytes = 4096;

bool is_below(std::string_view path, std::string_view parent) {
  if (parent == "/") return path.size() > 1;
  return path.size() > parent.size() && path.starts_with(parent) && path[parent.size()] == '/';
}

bool is_at_or_below(std::string_view path, std::string_view parent) { return path == parent || is_below(path, parent); }

std::string parent_of(const std::string& path) {
  const auto slash = path.rfind('/');
  return slash == 0 ? "/" : path.substr(0, slash);
}

std::string first_name(std::string_view path) { return std::string(path.substr(1, path.find('/', 1) - 1)); }

// "/a" sorts before "/a/b", and that before "/a-b": by components.
struct ByComponents {
  bool operator()(const std::string& a, const std::string& b) const {
    return std::ranges::lexicographical_compare(a, b, [](char x, char y) {
      const auto rank = [](char c) { return c == '/' ? -1 : static_cast<int>(static_cast<unsigned char>(c)); };
      return rank(x) < rank(y);
    });
  }
};

struct Entry {
  enum class What { exposed, hidden, made } what = What::made;
  // exposed, hidden:
  Access access = Access::deny;
  std::string host;  // canonical path on the host
  FileType type = FileType::directory;
  std::string key;   // of the rule, for messages
  bool workspace = false;
  // made:
  MountStep step{};
};

class View {
 public:
  View(const policy::PolicyFields& policy, const HostFacts& facts, SandboxPlan& plan)
      : policy_(policy), facts_(facts), plan_(plan) {}

  Result<void> build() {
    plan_.workspace = policy_.filesystem.workspace.mount;
    const bool top_level = parent_of(plan_.workspace) == "/";
    plan_.root = top_level ? RootKind::private_directory : RootKind::tmpfs;
    if (auto r = add_system(); !r) return r;
    if (auto r = add_workspace(); !r) return r;
    if (auto r = add_rules(); !r) return r;
    if (plan_.root == RootKind::private_directory && entries_.contains("/")) {
      return fail(entries_.at("/").key + ": \"/\"", "the sandbox's own root directory would be hidden, and with it \"" + plan_.workspace + "\"",
                  "name the directories that are needed, or mount the workspace at its own path");
    }
    choose_home();
    add_private_places();
    if (auto r = add_etc(); !r) return r;
    if (auto r = protect(); !r) return r;
    emit();
    return {};
  }

 private:
  Result<const HostPath*> fact(const std::string& path, const std::string& key) const {
    const auto it = facts_.paths.find(path);
    if (it == facts_.paths.end()) return fail(key + ": \"" + printable(path) + "\"", "was not looked up on this host");
    return &it->second;
  }

  std::size_t add_slot(FdSlot slot) {
    const auto same = std::ranges::find(plan_.slots, slot);
    if (same != plan_.slots.end() && slot.kind == FdSlot::Kind::host_path) return static_cast<std::size_t>(same - plan_.slots.begin());
    plan_.slots.push_back(std::move(slot));
    return plan_.slots.size() - 1;
  }

  void add_made(MountStep step) {
    Entry entry;
    entry.step = std::move(step);
    const std::string dest = entry.step.dest;
    entries_.emplace(dest, std::move(entry));
  }

  // The nearest entry that shows host files and that `dest` lies below.
  const Entry* exposure_above(const std::string& dest) const {
    for (std::string path = dest; path != "/";) {
      path = parent_of(path);
      const auto it = entries_.find(path);
      if (it == entries_.end()) continue;
      return it->second.what == Entry::What::exposed ? &it->second : nullptr;
    }
    return nullptr;
  }

  // Links on the way, where no exposed tree already shows them.
  void add_links(const HostPath& path) {
    for (const Symlink& link : path.links) {
      if (entries_.contains(link.path)) continue;
      links_.push_back(link);
    }
  }

  Result<void> add_exposed(const std::string& dest, Access access, const HostPath& path, const std::string& key, bool workspace = false) {
    Entry entry;
    entry.what = access == Access::deny ? Entry::What::hidden : Entry::What::exposed;
    entry.access = access;
    entry.host = path.canonical;
    entry.type = path.type;
    entry.key = key;
    entry.workspace = workspace;
    const auto [it, inserted] = entries_.emplace(dest, entry);
    if (!inserted && it->second.what != Entry::What::made) {
      if (it->second.access == access && it->second.what == entry.what) return {};
      if (it->second.key.empty()) {  // the default view: the policy's own word counts
        it->second = entry;
        return {};
      }
      return fail(key + ": \"" + printable(dest) + "\"", "contradicts " + it->second.key + ", which is the same file",
                  "keep one of the two rules");
    }
    if (!inserted) it->second = entry;
    return {};
  }

  Result<void> add_system() {
    for (const auto& name : system_paths()) {
      const auto it = facts_.paths.find(name);
      if (it == facts_.paths.end() || it->second.type == FileType::missing) continue;
      if (!it->second.links.empty()) {
        add_links(it->second);  // merged /usr: /bin is a link to usr/bin
      } else if (auto r = add_exposed(name, Access::read, it->second, ""); !r) {
        return r;
      }
    }
    return {};
  }

  Result<void> add_workspace() {
    const auto& workspace = policy_.filesystem.workspace;
    if (workspace.mode == policy::WorkspaceMode::private_) return {};
    const auto path = fact(workspace.path, "filesystem.workspace.path");
    if (!path) return std::unexpected(path.error());
    const std::string what = "filesystem.workspace.path: \"" + printable(workspace.path) + "\"";
    if ((*path)->type == FileType::missing) return fail(what, "no such directory", "create it, or name another");
    if ((*path)->type != FileType::directory) return fail(what, "not a directory", "name a directory");
    workspace_host_ = (*path)->canonical;
    // Mounted at its own path: the canonical one, and the links that were written.
    if (workspace.mount == workspace.path) {
      plan_.workspace = workspace_host_;
      add_links(**path);
    }
    return add_exposed(plan_.workspace, Access::write, **path, "filesystem.workspace.path", true);
  }

  Result<void> add_rules() {
    for (const auto& rule : policy_.filesystem.rules) {
      const auto path = fact(rule.path, rule.key);
      if (!path) return std::unexpected(path.error());
      const std::string what = rule.key + ": \"" + printable(rule.path) + "\"";
      if (rule.access != Access::deny && (*path)->type == FileType::missing) {
        return fail(what, "no such file or directory", "create it, or take the rule out");
      }
      if (rule.access != Access::deny && (*path)->type == FileType::other) {
        return fail(what, "is a socket, a FIFO or a device; a sandbox gets none of the host's", "take the rule out");
      }
      // A rule about a part of the workspace is about that part where the sandbox sees it.
      std::string dest = (*path)->canonical;
      if (!workspace_host_.empty() && is_at_or_below(dest, workspace_host_)) {
        dest = plan_.workspace + dest.substr(workspace_host_.size());
      } else if (rule.access != Access::deny) {
        add_links(**path);
      }
      if (auto r = add_exposed(dest, rule.access, **path, rule.key); !r) return r;
    }
    hide_state();
    return {};
  }

  // A rule for a home directory must not show other sandboxes' private workspaces.
  void hide_state() {
    const std::string& state = facts_.state_dir.canonical;
    if (state.empty() || facts_.state_dir.type == FileType::missing || entries_.contains(state)) return;
    const bool shown = std::ranges::any_of(entries_, [&](const auto& item) {
      return item.second.what == Entry::What::exposed && item.second.host == item.first && is_below(state, item.first);
    });
    if (!shown) return;
    Entry entry;
    entry.what = Entry::What::hidden;
    entry.host = state;
    entry.type = facts_.state_dir.type;
    entries_.emplace(state, entry);
  }

  // The caller's home directory's path is $HOME inside too, so that a rule for "~/.gitconfig" is where git looks. Where the policy shows the host's home itself,
  // the private one is elsewhere.
  void choose_home() {
    plan_.home = facts_.home;
    const bool usable = plan_.home.starts_with('/') && plan_.home.size() > 1 && !is_at_or_below(plan_.home, plan_.workspace) &&
                        !is_at_or_below(plan_.home, "/usr") && !is_at_or_below(plan_.home, "/proc") && !is_at_or_below(plan_.home, "/dev");
    const bool shown = std::ranges::any_of(entries_, [&](const auto& item) {
      return item.second.what == Entry::What::exposed && is_at_or_below(plan_.home, item.first);
    });
    if (!usable || shown) plan_.home = "/run/home";
    // A workspace in the home directory, "/home/u/project", is mounted below the private one.
  }

  void add_private_places() {
    const std::uint64_t size = policy_.limits.tmp_size.value_or(kDefaultTmpBytes);
    auto tmpfs = [&](const char* dest, unsigned permissions) {
      add_made({.kind = Kind::tmpfs, .dest = dest, .size = size, .permissions = permissions});
    };
    add_made({.kind = Kind::proc, .dest = "/proc"});
    add_made({.kind = Kind::dev, .dest = "/dev"});
    tmpfs("/dev/shm", 01777);
    tmpfs("/tmp", 01777);
    if (plan_.root == RootKind::private_directory) {
      // On the disk, with the workspace: home directories get large caches.
      add_made({.kind = Kind::directory, .dest = "/var/tmp", .permissions = 01777});
      add_made({.kind = Kind::directory, .dest = "/run", .permissions = 0755});
      add_made({.kind = Kind::directory, .dest = plan_.home, .permissions = 0700});
      if (policy_.filesystem.workspace.mode == policy::WorkspaceMode::private_) {
        add_made({.kind = Kind::directory, .dest = plan_.workspace, .permissions = 0755});
      } else {
        // What deepagents writes for itself must not litter a directory of the user's.
        for (const char* name : {"/large_tool_results", "/conversation_history"}) {
          add_made({.kind = Kind::directory, .dest = name, .permissions = 0755});
        }
      }
    } else {
      tmpfs("/var/tmp", 01777);
      tmpfs("/run", 0755);
      tmpfs(plan_.home.c_str(), 0700);
      if (policy_.filesystem.workspace.mode == policy::WorkspaceMode::private_) tmpfs(plan_.workspace.c_str(), 0755);
    }
    const std::size_t agent = add_slot({.kind = FdSlot::Kind::agent, .text = {}});
    add_made({.kind = Kind::ro_bind, .dest = kAgentPath, .slot = agent});
    for (const Symlink& link : links_) {
      if (exposure_above(link.path) == nullptr && !entries_.contains(link.path)) {
        add_made({.kind = Kind::symlink, .dest = link.path, .target = link.target});
      }
    }
  }

  Result<void> add_etc() {
    if (const auto it = entries_.find("/etc"); it != entries_.end() && it->second.what == Entry::What::exposed) return {};
    plan_.etc = synthetic_etc(policy_.process, plan_.home, facts_.etc_names);
    // The view is read-only when it is mounted: what the policy mounts below it needs a place there.
    for (const auto& [dest, entry] : entries_) {
      if (!is_below(dest, "/etc")) continue;
      const std::string name = dest.substr(5);
      if (entry.what == Entry::What::exposed) {
        (entry.type == FileType::directory ? plan_.etc->directories : plan_.etc->files).push_back(name);
        std::erase_if(plan_.etc->copied, [&](const std::string& copied) { return is_at_or_below("/" + copied, "/" + name); });
        plan_.etc->made.erase(name);
      }
    }
    const std::size_t slot = add_slot({.kind = FdSlot::Kind::etc, .text = {}});
    add_made({.kind = Kind::ro_bind, .dest = "/etc", .slot = slot});
    return {};
  }

  // Refuses what can't be hidden, drops what hides nothing, and pins the directories on the way (see the header).
  Result<void> protect() {
    std::vector<std::pair<std::string, Entry>> pins;
    for (auto it = entries_.begin(); it != entries_.end();) {
      const std::string& dest = it->first;
      Entry& entry = it->second;
      const Entry* above = entry.what == Entry::What::made ? nullptr : exposure_above(dest);
      if (entry.what == Entry::What::hidden) {
        const bool nothing_there = above == nullptr && !has_below(dest);
        if (nothing_there) {
          it = entries_.erase(it);
          continue;
        }
        if (entry.type == FileType::missing) {
          return fail(entry.key + ": \"" + printable(dest) + "\"",
                      "does not exist, and " + (above->key.empty() ? std::string("the default view") : above->key) + " shows the directory it would be in: a name that is not there can't be hidden",
                      "create it, or deny its directory and allow what is needed of it");
        }
      } else if (entry.what == Entry::What::exposed && above != nullptr && above->access == entry.access && !has_hidden_between(dest)) {
        it = entries_.erase(it);  // the tree above shows it already, with the same rights
        continue;
      }
      if (above != nullptr && above->access == Access::write && entry.access != Access::write) {
        for (std::string path = parent_of(dest); !entries_.contains(path); path = parent_of(path)) {
          Entry pin;
          pin.what = Entry::What::exposed;
          pin.access = Access::write;
          pin.host = parent_host(*above, path);
          pin.workspace = above->workspace;
          pins.emplace_back(path, pin);
        }
      }
      ++it;
    }
    for (auto& [path, pin] : pins) entries_.emplace(path, pin);
    return {};
  }

  std::string parent_host(const Entry& above, const std::string& path) const {
    const auto it = std::ranges::find_if(entries_, [&](const auto& item) { return &item.second == &above; });
    return above.host + path.substr(it->first == "/" ? 0 : it->first.size());
  }

  bool has_below(const std::string& dest) const {
    return std::ranges::any_of(entries_, [&](const auto& item) {
      return is_below(item.first, dest) && item.second.what == Entry::What::exposed;
    });
  }

  bool has_hidden_between(const std::string& dest) const {
    for (std::string path = dest; path != "/";) {
      path = parent_of(path);
      const auto it = entries_.find(path);
      if (it == entries_.end()) continue;
      return it->second.what == Entry::What::hidden;
    }
    return false;
  }

  void emit() {
    auto& mounts = plan_.mounts;
    if (plan_.root == RootKind::private_directory) {
      mounts.push_back({.kind = Kind::bind, .dest = "/", .slot = add_slot({.kind = FdSlot::Kind::state, .text = "root"})});
    }
    std::vector<std::string> seal;  // read-only at the end, when all that is below is there
    for (const auto& [dest, entry] : entries_) {
      if (entry.what == Entry::What::made) {
        mounts.push_back(entry.step);
        if (entry.step.kind == Kind::dev) seal.push_back(dest);
      } else if (entry.what == Entry::What::exposed) {
        FdSlot slot{.kind = FdSlot::Kind::host_path, .text = entry.host};
        slot.idmap = facts_.uid == 0 && facts_.can_idmap && entry.access == Access::write;
        mounts.push_back({.kind = entry.access == Access::write ? Kind::bind : Kind::ro_bind, .dest = dest, .slot = add_slot(slot)});
      } else if (entry.type == FileType::directory) {
        const bool passable = has_below(dest);
        mounts.push_back({.kind = Kind::tmpfs, .dest = dest, .size = kHiddenBytes, .permissions = passable ? 0555U : 0U});
        seal.push_back(dest);
      } else {
        const std::size_t slot = add_slot({.kind = FdSlot::Kind::data, .text = ""});
        mounts.push_back({.kind = Kind::ro_data, .dest = dest, .slot = slot, .permissions = 0U});
      }
    }
    for (const auto& dest : seal) mounts.push_back({.kind = Kind::remount_ro, .dest = dest});
    if (plan_.root == RootKind::tmpfs) mounts.push_back({.kind = Kind::remount_ro, .dest = "/"});
    for (const auto& [dest, entry] : entries_) {
      const std::string name = first_name(dest);
      if (std::ranges::find(plan_.root_names, name) == plan_.root_names.end()) plan_.root_names.push_back(name);
    }
  }

  const policy::PolicyFields& policy_;
  const HostFacts& facts_;
  SandboxPlan& plan_;
  std::map<std::string, Entry, ByComponents> entries_;
  std::vector<Symlink> links_;
  std::string workspace_host_;
};

}  // namespace

Result<void> plan_filesystem(const policy::PolicyFields& policy, const HostFacts& facts, SandboxPlan& plan) {
  return View(policy, facts, plan).build();
}

}  // namespace sandy::plan
