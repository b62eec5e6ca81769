#include "plan/filesystem_view.h"

#include <algorithm>

#include "plan/hidden_sockets.h"
#include "plan/made_links.h"
#include "plan/path_text.h"
#include "plan/resolved_paths.h"
#include "plan/synthetic_etc.h"
#include "plan/view_entries.h"

namespace sandy::plan {
namespace {

using policy::Access;
using Kind = MountStep::Kind;

constexpr std::uint64_t kDefaultTmpBytes = 1ULL << 30;
constexpr std::uint64_t kHiddenBytes = 4096;

class View {
 public:
  View(const policy::PolicyFields& policy, const HostFacts& facts, SandboxPlan& plan)
      : policy_(policy), facts_(facts), plan_(plan) {}

  Result<void> build() {
    plan_.workspace = policy_.filesystem.workspace.mount;
    const bool top_level = parent_of(plan_.workspace) == "/";
    plan_.root = top_level ? RootKind::private_directory : RootKind::tmpfs;
    add_system();
    if (auto r = add_workspace(); !r) return r;
    if (auto r = add_rules(); !r) return r;
    if (auto r = keep_read_only(); !r) return r;
    if (plan_.root == RootKind::private_directory && entries_.contains("/")) {
      return fail(entries_.all().at("/").key + ": \"/\"", "the sandbox's own root directory would be hidden, and with it \"" + plan_.workspace + "\"",
                  "name the directories that are needed, or mount the workspace at its own path");
    }
    if (auto r = check_workspace_place(); !r) return r;
    choose_home();
    add_private_places();
    if (auto r = check_agent_place(); !r) return r;
    add_etc();
    if (auto r = hide_sockets(facts_, entries_, plan_); !r) return r;
    if (auto r = protect(); !r) return r;
    emit();
    return {};
  }

 private:
  // One for each mount, also where two are of one path: bubblewrap closes a descriptor when it has mounted it.
  std::size_t add_slot(FdSlot slot) {
    plan_.slots.push_back(std::move(slot));
    return plan_.slots.size() - 1;
  }

  // A writable place of the sandbox's own: a directory of its root, or, where that place is covered by what a rule
  // shows or hides, a file system in memory.
  void add_place(const std::string& wanted, unsigned permissions, bool in_memory = false) {
    const std::string dest = links_.resolve(wanted);
    MountStep step{.kind = Kind::directory, .dest = dest, .permissions = permissions};
    if (in_memory || plan_.root == RootKind::tmpfs || entries_.is_covered(dest)) {
      step.kind = Kind::tmpfs;
      // Its files are memory: by default all three of them leave some of that.
      const std::uint64_t memory = plan_.cgroup ? plan_.cgroup->limits.memory.value_or(UINT64_MAX) : UINT64_MAX;
      step.size = policy_.limits.tmp_size.value_or(std::min(kDefaultTmpBytes, memory / 4));
    }
    entries_.add_made(std::move(step));
  }

  void add_system() {
    for (const auto& name : system_paths()) {
      const auto it = facts_.paths.find(name);
      if (it == facts_.paths.end() || it->second.type == FileType::missing) continue;
      if (!it->second.links.empty()) {
        links_.add(it->second);  // merged /usr: /bin is a link to usr/bin
      } else {
        entries_.add_path(name, Access::read, it->second, "");
      }
    }
  }

  Result<void> add_workspace() {
    const auto& workspace = policy_.filesystem.workspace;
    if (workspace.mode == policy::WorkspaceMode::private_) return {};
    const auto path = fact_of(facts_, workspace.path, workspace.path_key);
    if (!path) return std::unexpected(path.error());
    const std::string what = workspace.path_key + ": \"" + printable(workspace.path) + "\"";
    if ((*path)->type == FileType::missing) return fail(what, "no such directory", "create it, or name another");
    if ((*path)->type != FileType::directory) return fail(what, "not a directory", "name a directory");
    workspace_host_ = (*path)->canonical;
    // Mounted at its own path: the canonical one, and the links that were written.
    if (workspace.mount == workspace.path) {
      plan_.workspace = workspace_host_;
      links_.add(**path);
    }
    entries_.add_path(plan_.workspace, Access::write, **path, workspace.path_key);
    return {};
  }

  Result<void> add_rules() {
    for (const auto& rule : policy_.filesystem.rules) {
      const auto path = fact_of(facts_, rule.path, rule.key);
      if (!path) return std::unexpected(path.error());
      const std::string what = rule.key + ": \"" + printable(rule.path) + "\"";
      if (rule.access != Access::deny && (*path)->type == FileType::missing) {
        return fail(what, "no such file or directory", "create it, or take the rule out");
      }
      if (rule.access != Access::deny && (*path)->type == FileType::other) {
        return fail(what, "is a FIFO or a device; a sandbox gets none of the host's", "take the rule out");
      }
      const std::string& host = (*path)->canonical;
      // A rule about a part of the workspace is about that part where the sandbox sees it, and also where another rule shows it.
      if (in_workspace(host)) {
        const std::string dest = moved(host, workspace_host_, plan_.workspace);
        entries_.add_path(dest, rule.access, **path, rule.key);
        if (dest == host && rule.access != Access::deny) links_.add(**path);
        if (dest == host || !is_shown_elsewhere(host)) continue;
      } else if (!workspace_host_.empty() && is_below(host, plan_.workspace)) {
        if (rule.access == Access::deny) continue;
        return fail(what, "the workspace is mounted at \"" + printable(plan_.workspace) + "\", and would hide it",
                    "set filesystem.workspace.mount to another directory");
      } else if (rule.access != Access::deny) {
        links_.add(**path);
      }
      entries_.add_path(host, rule.access, **path, rule.key);
    }
    for (const auto& tree : facts_.kernel_trees) hide(tree);
    hide(facts_.state_dir);
    for (const auto& directory : facts_.socket_dirs) {
      if (auto shown = check_not_in(directory.canonical); !shown) return shown;
      hide(directory);
    }
    return {};
  }

  // Commands of this sandbox must not choose what the next one is.
  Result<void> keep_read_only() {
    for (const HostPath& path : facts_.kept) {
      if (auto led = check_way(path); !led) return led;
      if (path.type != FileType::file && path.type != FileType::directory) continue;
      for (const std::string& dest : writable_places(path)) entries_.add_path(dest, Access::read, path, "what decides the next start");
    }
    for (const HostPath& policies : facts_.policies) {
      if (auto kept = keep_policies(policies); !kept) return kept;
    }
    return {};
  }

  // By its name, a policy that commands put there would go before the one that is meant.
  Result<void> keep_policies(const HostPath& policies) {
    if (!policy_.filesystem.unsafe_broad_workspace) {
      if (auto led = check_way(policies); !led) return led;
    }
    for (const std::string& dest : writable_places(policies)) {
      if (policies.type == FileType::directory) {
        entries_.add_path(dest, Access::read, policies, "what decides the next start");
      } else if (policies.type != FileType::missing) {
        return fail("\"" + printable(policies.canonical) + "\"", "is no directory, and commands could make it one with policies of theirs", "remove it, or make it a directory");
      } else if (!policy_.filesystem.unsafe_broad_workspace) {
        const auto* above = entries_.exposure_above(dest);
        return fail(above->second.key + ": \"" + printable(above->first) + "\"",
                    "commands could make \"" + printable(policies.canonical) + "\" there, whose policies --policy NAME finds",
                    "make that directory first (it is then read-only for them), or name a smaller one");
      }
    }
    return {};
  }

  // As for rules (resolved_paths.h): a link that commands can replace would lead the next start to what is theirs.
  Result<void> check_way(const HostPath& path) const {
    for (const Symlink& link : path.links) {
      const auto places = writable_places({.canonical = link.path, .type = FileType::file});
      if (places.empty()) continue;
      const auto* above = entries_.exposure_above(places.front());
      return fail("\"" + printable(link.path) + "\"",
                  "is a symbolic link that commands can change, as " + above->second.key + " makes it writable, on the way to what decides the next start: \"" +
                      printable(path.canonical) + "\"",
                  "name a workspace, and rules, without it, or put in its place what it leads to");
    }
    return {};
  }

  // Where commands would have this path of the host's to write, if nothing is done about it.
  std::vector<std::string> writable_places(const HostPath& path) const {
    std::vector<std::string> places{path.canonical}, out;
    if (in_workspace(path.canonical)) places.push_back(moved(path.canonical, workspace_host_, plan_.workspace));
    for (const std::string& dest : places) {
      if (entries_.contains(dest)) continue;
      const auto* above = entries_.exposure_above(dest);
      if (above == nullptr || above->second.access != Access::write || moved(dest, above->first, above->second.host) != path.canonical) continue;
      out.push_back(dest);
    }
    return out;
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
    if (links_.resolve(plan_.workspace) != plan_.workspace) {
      return fail(policy_.filesystem.workspace.mount_key + ": \"" + printable(plan_.workspace) + "\"", "a symbolic link that a rule needs is on the way",
                  "write \"" + printable(links_.resolve(plan_.workspace)) + "\", or leave it out to have /workspace");
    }
    const auto* above = workspace_host_ == plan_.workspace ? nullptr : entries_.exposure_above(plan_.workspace);
    if (above == nullptr) return {};
    return fail(policy_.filesystem.workspace.mount_key + ": \"" + printable(plan_.workspace) + "\"",
                "is in what " + shower(above->second) + " shows of the host",
                "choose a directory outside of it, or leave it out to have /workspace");
  }

  Result<void> check_agent_place() const {
    const auto* above = entries_.exposure_above(kAgentPath);
    if (above == nullptr) return {};
    return fail(above->second.key + ": \"/run\"", "the sandbox has its own /run, with its agent in it", "name the directories in /run that are needed");
  }

  Result<void> check_not_in(const std::string& own) const {
    for (const auto& [dest, entry] : entries_.all()) {
      if (entry.what != Entry::What::exposed || !is_at_or_below(entry.host, own)) continue;
      return fail(entry.key + ": \"" + printable(dest) + "\"", "Sandy's own state, with its control sockets, never reaches a sandbox", "leave the rule out");
    }
    return {};
  }

  // A rule for a home directory must not show other sandboxes' private workspaces, nor where they listen; one for "/" not the kernel's state.
  void hide(const HostPath& own) {
    const std::string& state = own.canonical;
    if (state.empty() || own.type == FileType::missing) return;
    std::vector<std::string> shown;
    for (const auto& [dest, entry] : entries_.all()) {
      if (entry.what == Entry::What::exposed && is_below(state, entry.host)) shown.push_back(moved(state, entry.host, dest));
    }
    for (const auto& dest : shown) {
      Entry entry;
      entry.what = Entry::What::hidden;
      entry.host = state;
      entry.type = own.type;
      entries_.all().emplace(dest, entry);
    }
  }

  // The caller's home directory's path is $HOME inside too, so that a rule for "~/.gitconfig" is where git looks. Where the policy shows the host's home itself,
  // the private one is elsewhere.
  void choose_home() {
    plan_.home = links_.resolve(facts_.home);
    const bool usable = plan_.home.starts_with('/') && plan_.home.size() > 1 && !is_at_or_below(plan_.home, plan_.workspace) &&
                        !is_at_or_below(plan_.home, "/usr") && !is_at_or_below(plan_.home, "/etc") && !is_at_or_below(plan_.home, "/proc") &&
                        !is_at_or_below(plan_.home, "/dev");
    const bool shown = std::ranges::any_of(entries_.all(), [&](const auto& item) {
      return item.second.what == Entry::What::exposed && is_at_or_below(plan_.home, item.first);
    });
    if (!usable || shown) plan_.home = "/run/home";
    // A workspace in the home directory, "/home/u/project", is mounted below the private one.
  }

  void add_private_places() {
    const bool is_private = policy_.filesystem.workspace.mode == policy::WorkspaceMode::private_;
    entries_.add_made({.kind = Kind::proc, .dest = "/proc"});
    entries_.add_made({.kind = Kind::dev, .dest = "/dev"});
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
    entries_.add_made({.kind = Kind::ro_bind, .dest = kAgentPath, .slot = agent});
    add_python();
    links_.make(entries_);
  }

  // Models type `python`, and many distributions have python3 alone.
  void add_python() {
    const auto is_there = [&](const char* path) {
      const auto it = facts_.paths.find(path);
      return it != facts_.paths.end() && it->second.type == FileType::file;
    };
    if (!is_there(kPython3) || std::ranges::any_of(kPythonNames, is_there)) return;
    entries_.add_made({.kind = Kind::symlink, .dest = std::string(kExtraPrograms) + "/python", .target = kPython3});
  }

  void add_etc() {
    if (const auto it = entries_.all().find("/etc"); it != entries_.all().end() && it->second.what == Entry::What::exposed) return;
    plan_.etc = synthetic_etc(policy_.process, plan_.home, policy_.network.mode == policy::NetworkMode::allowlist, facts_.etc_names);
    take_links_of_etc();
    for (auto& [dest, entry] : entries_.all()) {
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
    entries_.add_made({.kind = Kind::ro_bind, .dest = "/etc", .slot = slot});
  }

  // Links, and the directories that ".." passes, are made in the view: it is read-only when it is mounted.
  void take_links_of_etc() {
    std::erase_if(entries_.all(), [&](const auto& item) {
      const auto& [dest, entry] = item;
      if (!is_below(dest, "/etc") || entry.what != Entry::What::made) return false;
      const std::string name = dest.substr(5);
      if (entry.step.kind == Kind::symlink) {
        plan_.etc->made.erase(name);
        plan_.etc->links[name] = entry.step.target;
      } else {
        plan_.etc->directories.push_back(name);
      }
      return true;
    });
  }

  // Refuses what can't be hidden, drops what hides nothing, and pins the directories on the way (see the header).
  Result<void> protect() {
    auto& entries = entries_.all();
    std::vector<std::pair<std::string, Entry>> pins;
    for (auto it = entries.begin(); it != entries.end();) {
      const std::string& dest = it->first;
      Entry& entry = it->second;
      const auto* above = entry.what == Entry::What::made ? nullptr : entries_.exposure_above(dest);
      if (entry.what == Entry::What::hidden) {
        const bool nothing_there = above == nullptr && !entry.in_copy && !entries_.has_exposed_below(dest);
        if (nothing_there) {
          it = entries.erase(it);
          continue;
        }
        if (entry.type == FileType::missing) {
          return fail(entry.key + ": \"" + printable(dest) + "\"",
                      "does not exist, and " + (above == nullptr ? "the default view" : shower(above->second)) +
                          " shows the directory it would be in: a name that is not there can't be hidden",
                      "create it, or deny its directory and allow what is needed of it");
        }
      } else if (entry.what == Entry::What::exposed && above != nullptr && above->second.access == entry.access && entry.host == host_below(*above, dest)) {
        it = entries.erase(it);  // the tree above shows it already, with the same rights
        continue;
      }
      if (above != nullptr && above->second.access == Access::write && entry.access != Access::write) {
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
    for (auto& [path, pin] : pins) entries.emplace(path, pin);
    return {};
  }

  static std::string host_below(const ViewEntries::Item& above, const std::string& dest) { return moved(dest, above.first, above.second.host); }

  // What shows the host's files of an entry, for messages.
  static std::string shower(const Entry& entry) { return entry.key.empty() ? "the default view" : entry.key; }

  void emit() {
    auto& mounts = plan_.mounts;
    if (plan_.root == RootKind::private_directory) {
      mounts.push_back({.kind = Kind::bind, .dest = "/", .slot = add_slot({.kind = FdSlot::Kind::state, .text = kRootDirectory})});
    }
    std::vector<std::string> seal;  // read-only at the end, when all that is below is there
    for (const auto& [dest, entry] : entries_.all()) {
      if (entry.what == Entry::What::made) {
        mounts.push_back(entry.step);
        if (entry.step.kind == Kind::dev) seal.push_back(dest);
      } else if (entry.what == Entry::What::exposed) {
        FdSlot slot{.kind = FdSlot::Kind::host_path, .text = entry.host};
        slot.idmap = facts_.uid == 0 && facts_.can_idmap && entry.access == Access::write;
        mounts.push_back({.kind = entry.access == Access::write ? Kind::bind : Kind::ro_bind, .dest = dest, .slot = add_slot(slot)});
      } else if (entry.type == FileType::directory) {
        const bool passable = entries_.is_passed(dest);
        mounts.push_back({.kind = Kind::tmpfs, .dest = dest, .size = kHiddenBytes, .permissions = passable ? 0555U : 0U});
        seal.push_back(dest);
      } else {
        const std::size_t slot = add_slot({.kind = FdSlot::Kind::data, .text = ""});
        mounts.push_back({.kind = Kind::ro_data, .dest = dest, .slot = slot, .permissions = 0U});
      }
    }
    for (const auto& dest : seal) mounts.push_back({.kind = Kind::remount_ro, .dest = dest});
    const auto whole = entries_.all().find("/");
    const bool writable = whole != entries_.all().end() && whole->second.access == Access::write;
    if (plan_.root == RootKind::tmpfs && !writable) mounts.push_back({.kind = Kind::remount_ro, .dest = "/"});
    for (const auto& [dest, entry] : entries_.all()) {
      const std::string name = dest == "/" ? "" : first_name(dest);
      if (!name.empty() && std::ranges::find(plan_.root_names, name) == plan_.root_names.end()) plan_.root_names.push_back(name);
    }
  }

  const policy::PolicyFields& policy_;
  const HostFacts& facts_;
  SandboxPlan& plan_;
  ViewEntries entries_;
  MadeLinks links_;
  std::string workspace_host_;
};

}  // namespace

Result<void> plan_filesystem(const policy::PolicyFields& policy, const HostFacts& facts, SandboxPlan& plan) {
  return View(policy, facts, plan).build();
}

}  // namespace sandy::plan
