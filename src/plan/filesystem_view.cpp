#include "plan/filesystem_view.h"

#include <algorithm>

#include "plan/path_text.h"
#include "plan/synthetic_etc.h"
#include "policy/paths.h"

namespace sandy::plan {
namespace {

using policy::Access;
using Kind = MountStep::Kind;

constexpr std::uint64_t kDefaultTmpBytes = 1ULL << 30;
constexpr std::uint64_t kHiddenBytes = 4096;
constexpr char kFreshReason[] = "/proc, /sys and /dev are made fresh for each sandbox and never the host's";

bool is_fresh(std::string_view path) {
  return std::ranges::any_of(std::initializer_list<std::string_view>{"/proc", "/sys", "/dev"}, [&](auto tree) { return is_at_or_below(path, tree); });
}

struct Entry {
  enum class What { exposed, hidden, made } what = What::made;
  // exposed, hidden:
  Access access = Access::deny;
  std::string host;  // canonical path on the host
  FileType type = FileType::directory;
  std::string key;   // of the rule, for messages
  bool in_copy = false;  // hidden: in the view of /etc
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
    if (auto r = check_workspace_place(); !r) return r;
    choose_home();
    add_private_places();
    if (auto r = check_agent_place(); !r) return r;
    add_etc();
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
    // What is the sandbox's own needs no hiding.
    if (const auto it = entries_.find(dest); it != entries_.end() && it->second.what == Entry::What::hidden) entries_.erase(it);
    entries_.emplace(dest, std::move(entry));
  }

  // A writable place of the sandbox's own: a directory of its root, or, where that place is covered by what a rule
  // shows or hides, a file system in memory.
  void add_place(const std::string& wanted, unsigned permissions, bool in_memory = false) {
    const std::string dest = through_links(wanted);
    MountStep step{.kind = Kind::directory, .dest = dest, .permissions = permissions};
    if (in_memory || plan_.root == RootKind::tmpfs || is_covered(dest)) {
      step.kind = Kind::tmpfs;
      step.size = policy_.limits.tmp_size.value_or(kDefaultTmpBytes);
    }
    add_made(std::move(step));
  }

  // Where a path is if the links that the plan makes again are on the way: nothing is mounted through a link.
  std::string through_links(std::string path) const {
    for (int i = 0; i < 40; ++i) {
      const auto link = std::ranges::find_if(links_, [&](const Symlink& candidate) { return is_at_or_below(path, candidate.path); });
      if (link == links_.end()) return path;
      const std::string target = link->target.starts_with('/') ? link->target : parent_of(link->path) + "/" + link->target;
      path = policy::normalized(moved(path, link->path, target));
    }
    return path;
  }

  bool is_covered(const std::string& dest) const {
    for (std::string path = dest; path != "/";) {
      path = parent_of(path);
      const auto it = entries_.find(path);
      if (it != entries_.end()) return it->second.what != Entry::What::made || it->second.step.kind == Kind::tmpfs;
    }
    return false;
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

  Result<void> add_exposed(const std::string& dest, Access access, const HostPath& path, const std::string& key) {
    Entry entry;
    entry.what = access == Access::deny ? Entry::What::hidden : Entry::What::exposed;
    entry.access = access;
    entry.host = path.canonical;
    entry.type = path.type;
    entry.key = key;
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
    if (is_fresh((*path)->canonical) && !is_below((*path)->canonical, "/dev/shm")) return fail(what, kFreshReason);
    workspace_host_ = (*path)->canonical;
    // Mounted at its own path: the canonical one, and the links that were written.
    if (workspace.mount == workspace.path) {
      plan_.workspace = workspace_host_;
      add_links(**path);
    }
    return add_exposed(plan_.workspace, Access::write, **path, "filesystem.workspace.path");
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
      const std::string& host = (*path)->canonical;
      if (is_fresh(host)) {
        if (rule.access == Access::deny) continue;
        return fail(what + " (" + printable(host) + ")", kFreshReason, "take the rule out");
      }
      // A rule about a part of the workspace is about that part where the sandbox sees it, and also where another rule shows it.
      if (in_workspace(host)) {
        const std::string dest = moved(host, workspace_host_, plan_.workspace);
        if (auto r = add_exposed(dest, rule.access, **path, rule.key); !r) return r;
        if (dest == host || !is_shown_elsewhere(host)) continue;
      } else if (!workspace_host_.empty() && is_below(host, plan_.workspace)) {
        if (rule.access == Access::deny) continue;
        return fail(what, "the workspace is mounted at \"" + printable(plan_.workspace) + "\", and would hide it",
                    "set filesystem.workspace.mount to another directory");
      } else if (rule.access != Access::deny) {
        add_links(**path);
      }
      if (auto r = add_exposed(host, rule.access, **path, rule.key); !r) return r;
    }
    hide_state();
    return {};
  }

  bool in_workspace(const std::string& host) const { return !workspace_host_.empty() && is_at_or_below(host, workspace_host_); }

  // Whether a rule for a directory above shows this part of the workspace at its own path too.
  bool is_shown_elsewhere(const std::string& host) const {
    return std::ranges::any_of(policy_.filesystem.rules, [&](const auto& rule) {
      const auto it = facts_.paths.find(rule.path);
      return rule.access != Access::deny && it != facts_.paths.end() && is_below(host, it->second.canonical) && !in_workspace(it->second.canonical);
    });
  }

  // Nothing can be mounted in a tree of the host where there is nothing: bubblewrap would make a directory there, or fail.
  Result<void> check_workspace_place() const {
    if (through_links(plan_.workspace) != plan_.workspace) {
      return fail("filesystem.workspace.mount: \"" + printable(plan_.workspace) + "\"", "a symbolic link that a rule needs is on the way",
                  "write \"" + printable(through_links(plan_.workspace)) + "\", or leave it out to have /workspace");
    }
    const Entry* above = workspace_host_ == plan_.workspace ? nullptr : exposure_above(plan_.workspace);
    if (above == nullptr) return {};
    return fail("filesystem.workspace.mount: \"" + printable(plan_.workspace) + "\"",
                "is in what " + (above->key.empty() ? std::string("the default view") : above->key) + " shows of the host",
                "choose a directory outside of it, or leave it out to have /workspace");
  }

  Result<void> check_agent_place() const {
    const Entry* above = exposure_above(kAgentPath);
    if (above == nullptr) return {};
    return fail(above->key + ": \"/run\"", "the sandbox has its own /run, with its agent in it", "name the directories in /run that are needed");
  }

  // A rule for a home directory must not show other sandboxes' private workspaces.
  void hide_state() {
    const std::string& state = facts_.state_dir.canonical;
    if (state.empty() || facts_.state_dir.type == FileType::missing) return;
    std::vector<std::string> shown;
    for (const auto& [dest, entry] : entries_) {
      if (entry.what == Entry::What::exposed && is_below(state, entry.host)) shown.push_back(moved(state, entry.host, dest));
    }
    for (const auto& dest : shown) {
      Entry entry;
      entry.what = Entry::What::hidden;
      entry.host = state;
      entry.type = facts_.state_dir.type;
      entries_.emplace(dest, entry);
    }
  }

  // The caller's home directory's path is $HOME inside too, so that a rule for "~/.gitconfig" is where git looks. Where the policy shows the host's home itself,
  // the private one is elsewhere.
  void choose_home() {
    plan_.home = through_links(facts_.home);
    const bool usable = plan_.home.starts_with('/') && plan_.home.size() > 1 && !is_at_or_below(plan_.home, plan_.workspace) &&
                        !is_at_or_below(plan_.home, "/usr") && !is_at_or_below(plan_.home, "/proc") && !is_at_or_below(plan_.home, "/dev");
    const bool shown = std::ranges::any_of(entries_, [&](const auto& item) {
      return item.second.what == Entry::What::exposed && is_at_or_below(plan_.home, item.first);
    });
    if (!usable || shown) plan_.home = "/run/home";
    // A workspace in the home directory, "/home/u/project", is mounted below the private one.
  }

  void add_private_places() {
    const bool is_private = policy_.filesystem.workspace.mode == policy::WorkspaceMode::private_;
    add_made({.kind = Kind::proc, .dest = "/proc"});
    add_made({.kind = Kind::dev, .dest = "/dev"});
    add_place("/dev/shm", 01777, true);
    add_place("/tmp", 01777, true);
    // In the sandbox's own directory on the disk, with the workspace, if it has one: home directories get large caches.
    add_place("/var/tmp", 01777);
    add_place("/run", 0755);
    add_place(plan_.home, 0700);
    if (is_private) add_place(plan_.workspace, 0755);
    if (!is_private && plan_.root == RootKind::private_directory) {
      // What deepagents writes for itself must not litter a directory of the user's.
      for (const char* name : {"/large_tool_results", "/conversation_history"}) add_place(name, 0755);
    }
    const std::size_t agent = add_slot({.kind = FdSlot::Kind::agent, .text = {}});
    add_made({.kind = Kind::ro_bind, .dest = kAgentPath, .slot = agent});
    add_python();
    for (const Symlink& link : links_) {
      if (exposure_above(link.path) == nullptr && !entries_.contains(link.path)) {
        add_made({.kind = Kind::symlink, .dest = link.path, .target = link.target});
      }
    }
  }

  // Models type `python`, and many distributions have python3 alone.
  void add_python() {
    const auto is_there = [&](const char* path) {
      const auto it = facts_.paths.find(path);
      return it != facts_.paths.end() && it->second.type == FileType::file;
    };
    if (!is_there(kPython3) || std::ranges::any_of(kPythonNames, is_there)) return;
    add_made({.kind = Kind::symlink, .dest = std::string(kExtraPrograms) + "/python", .target = kPython3});
  }

  void add_etc() {
    if (const auto it = entries_.find("/etc"); it != entries_.end() && it->second.what == Entry::What::exposed) return;
    plan_.etc = synthetic_etc(policy_.process, plan_.home, facts_.etc_names);
    for (auto& [dest, entry] : entries_) {
      if (!is_at_or_below(dest, "/etc") || entry.what == Entry::What::made) continue;
      const std::string name = dest == "/etc" ? "" : dest.substr(5);
      std::erase_if(plan_.etc->copied, [&](const std::string& copied) { return name.empty() || is_at_or_below("/" + copied, "/" + name); });
      if (entry.what == Entry::What::exposed) {
        // The view is read-only when it is mounted: what the policy mounts below it needs a place there.
        (entry.type == FileType::directory ? plan_.etc->directories : plan_.etc->files).push_back(name);
        plan_.etc->made.erase(name);
      } else {
        // Denied within a directory that is copied: hidden in the copy.
        entry.in_copy = entry.type != FileType::missing && std::ranges::any_of(plan_.etc->copied, [&](const std::string& copied) { return is_below(dest, "/etc/" + copied); });
      }
    }
    const std::size_t slot = add_slot({.kind = FdSlot::Kind::etc, .text = {}});
    add_made({.kind = Kind::ro_bind, .dest = "/etc", .slot = slot});
  }

  // Refuses what can't be hidden, drops what hides nothing, and pins the directories on the way (see the header).
  Result<void> protect() {
    std::vector<std::pair<std::string, Entry>> pins;
    for (auto it = entries_.begin(); it != entries_.end();) {
      const std::string& dest = it->first;
      Entry& entry = it->second;
      const Entry* above = entry.what == Entry::What::made ? nullptr : exposure_above(dest);
      if (entry.what == Entry::What::hidden) {
        const bool nothing_there = above == nullptr && !entry.in_copy && !has_exposed_below(dest);
        if (nothing_there) {
          it = entries_.erase(it);
          continue;
        }
        if (entry.type == FileType::missing) {
          return fail(entry.key + ": \"" + printable(dest) + "\"",
                      "does not exist, and " + (above->key.empty() ? std::string("the default view") : above->key) + " shows the directory it would be in: a name that is not there can't be hidden",
                      "create it, or deny its directory and allow what is needed of it");
        }
      } else if (entry.what == Entry::What::exposed && above != nullptr && above->access == entry.access && entry.host == host_below(*above, dest)) {
        it = entries_.erase(it);  // the tree above shows it already, with the same rights
        continue;
      }
      if (above != nullptr && above->access == Access::write && entry.access != Access::write) {
        for (std::string path = parent_of(dest); !entries_.contains(path); path = parent_of(path)) {
          Entry pin;
          pin.what = Entry::What::exposed;
          pin.access = Access::write;
          pin.host = host_below(*above, path);
          pins.emplace_back(path, pin);
        }
      }
      ++it;
    }
    for (auto& [path, pin] : pins) entries_.emplace(path, pin);
    return {};
  }

  std::string host_below(const Entry& above, const std::string& dest) const {
    const auto it = std::ranges::find_if(entries_, [&](const auto& item) { return &item.second == &above; });
    return moved(dest, it->first, above.host);
  }

  bool has_exposed_below(const std::string& dest) const {
    return std::ranges::any_of(entries_, [&](const auto& item) { return is_below(item.first, dest) && item.second.what == Entry::What::exposed; });
  }

  // Something below it is to be reached through it.
  bool is_passed(const std::string& dest) const {
    return std::ranges::any_of(entries_, [&](const auto& item) { return is_below(item.first, dest) && item.second.what != Entry::What::hidden; });
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
        const bool passable = is_passed(dest);
        mounts.push_back({.kind = Kind::tmpfs, .dest = dest, .size = kHiddenBytes, .permissions = passable ? 0555U : 0U});
        seal.push_back(dest);
      } else {
        const std::size_t slot = add_slot({.kind = FdSlot::Kind::data, .text = ""});
        mounts.push_back({.kind = Kind::ro_data, .dest = dest, .slot = slot, .permissions = 0U});
      }
    }
    for (const auto& dest : seal) mounts.push_back({.kind = Kind::remount_ro, .dest = dest});
    const auto whole = entries_.find("/");
    const bool writable = whole != entries_.end() && whole->second.access == Access::write;
    if (plan_.root == RootKind::tmpfs && !writable) mounts.push_back({.kind = Kind::remount_ro, .dest = "/"});
    for (const auto& [dest, entry] : entries_) {
      const std::string name = dest == "/" ? "" : first_name(dest);
      if (!name.empty() && std::ranges::find(plan_.root_names, name) == plan_.root_names.end()) plan_.root_names.push_back(name);
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
