#include "host/facts.h"

#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <initializer_list>
#include <string_view>

#include "host/kept_socket.h"
#include "host/path_resolver.h"
#include "host/proc_text.h"
#include "host/programs.h"
#include "host/state_directory.h"
#include "host/unix_sockets.h"
#include "plan/environment.h"
#include "plan/path_text.h"

extern char** environ;

namespace sandy::host {
namespace {

Result<void> add_path(const std::string& path, plan::HostFacts& facts) {
  if (facts.paths.contains(path)) return {};
  auto resolved = resolve_path(path);
  if (!resolved) return std::unexpected(resolved.error());
  facts.paths[path] = std::move(*resolved);
  return {};
}

std::map<std::string, std::string> caller_environment() {
  std::map<std::string, std::string> out;
  for (char** variable = environ; variable != nullptr && *variable != nullptr; ++variable) {
    const std::string_view text = *variable;
    const auto equals = text.find('=');
    if (equals != std::string_view::npos && equals > 0) out.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return out;
}

// The directories that the policy's own rules show.
std::vector<std::string> shown_trees(const policy::PolicyFields& policy, const plan::HostFacts& facts) {
  std::vector<std::string> trees;
  const auto add = [&](const std::string& path) {
    if (const auto& fact = facts.paths.at(path); fact.type == plan::FileType::directory) trees.push_back(fact.canonical);
  };
  if (policy.filesystem.workspace.mode == policy::WorkspaceMode::bind) add(policy.filesystem.workspace.path);
  for (const auto& rule : policy.filesystem.rules) {
    if (rule.access != policy::Access::deny) add(rule.path);
  }
  return trees;
}

}  // namespace

std::string home_directory() {
  if (const char* home = std::getenv("HOME"); home != nullptr && home[0] == '/') {
    std::string out = home;
    while (out.size() > 1 && out.back() == '/') out.pop_back();
    return out;
  }
  const passwd* entry = ::getpwuid(::geteuid());
  return entry != nullptr && entry->pw_dir != nullptr && entry->pw_dir[0] == '/' ? entry->pw_dir : "/";
}

std::uint64_t ram() {
  const long pages = ::sysconf(_SC_PHYS_PAGES), page = ::sysconf(_SC_PAGESIZE);
  return pages > 0 && page > 0 ? static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(page) : 0;
}

plan::HostFacts caller_facts() {
  plan::HostFacts facts;
  facts.uid = ::geteuid();
  facts.gid = ::getegid();
  facts.home = home_directory();
  facts.can_idmap = facts.uid == 0;
  facts.ram = ram();
  if (auto state = resolve_path(StateDirectory::likely_path())) facts.state_dir = std::move(*state);
  facts.environment = caller_environment();
  (void)add_path(facts.home, facts);  // it need not be there
  return facts;
}

Result<plan::HostFacts> host_facts() {
  plan::HostFacts facts = caller_facts();
  // Where it is, not where it would be looked for first: that is what a rule must not show.
  if (const auto open_state = StateDirectory::open()) {
    if (auto state = resolve_path(open_state->path())) facts.state_dir = std::move(*state);
  }
  auto bubblewrap = find_bubblewrap();
  if (!bubblewrap) return std::unexpected(bubblewrap.error());
  facts.bwrap = bubblewrap->path;
  facts.bwrap_options = std::move(bubblewrap->options);
  for (const auto& path : plan::system_paths()) {
    if (auto r = add_path(path, facts); !r) return std::unexpected(r.error());
  }
  for (const char* path : {plan::kPython3, plan::kPythonNames[0], plan::kPythonNames[1]}) {
    if (auto r = add_path(path, facts); !r) return std::unexpected(r.error());
  }
  // PATH may hold anything; an entry that can't be resolved is just not there.
  if (const auto path = facts.environment.find("PATH"); path != facts.environment.end()) {
    for (const auto& entry : plan::split_path(path->second)) (void)add_path(entry, facts);
  }
  for (const auto& name : plan::etc_candidates()) {
    struct stat st{};
    if (::lstat(("/etc/" + name).c_str(), &st) == 0) facts.etc_names.push_back(name);
  }
  return facts;
}

Result<void> add_policy_paths(const policy::PolicyFields& policy, plan::HostFacts& facts) {
  if (policy.filesystem.workspace.mode == policy::WorkspaceMode::bind) {
    if (auto r = add_path(policy.filesystem.workspace.path, facts); !r) return r;
  }
  for (const auto& rule : policy.filesystem.rules) {
    if (auto r = add_path(rule.path, facts); !r) return std::unexpected(Error{rule.key + ": " + r.error().what, r.error().why, r.error().fix});
  }
  return {};
}

Result<void> add_kernel_trees(const policy::PolicyFields& policy, plan::HostFacts& facts) {
  const auto trees = shown_trees(policy, facts);
  if (trees.empty()) return {};
  // The three also where a container has put something else there.
  std::vector<std::string> mounts{"/proc", "/dev", "/sys"};
  constexpr char kList[] = "/proc/self/mountinfo";
  const auto text = read_list(kList);
  if (!text) return fail(std::string("the kernel's file systems: ") + kList, text.error(), "a sandbox hides those in what it shows, so it needs the list: mount /proc");
  for (auto& point : kernel_mounts(*text)) mounts.push_back(std::move(point));
  for (const auto& point : mounts) {
    if (std::ranges::none_of(trees, [&](const std::string& tree) { return plan::is_below(point, tree); })) continue;
    const auto is_above = [&](const plan::HostPath& tree) { return plan::is_at_or_below(point, tree.canonical); };
    if (std::ranges::any_of(facts.kernel_trees, is_above)) continue;
    auto place = resolve_path(point);
    if (!place) return std::unexpected(place.error());
    // Else it is not what is reached by that name: something has been mounted over it.
    if (place->canonical == point) facts.kernel_trees.push_back(std::move(*place));
  }
  return {};
}

Result<void> add_sockets(const policy::PolicyFields& policy, plan::HostFacts& facts) {
  std::vector<std::string> trees = shown_trees(policy, facts);
  for (const auto& path : plan::system_paths()) {
    if (const auto& fact = facts.paths.at(path); fact.type == plan::FileType::directory) trees.push_back(fact.canonical);
  }
  auto sockets = bound_sockets(trees);
  if (!sockets) return std::unexpected(sockets.error());
  facts.sockets = std::move(*sockets);
  // Those that will be there are not yet, so their directory is hidden; what is hidden must be there.
  for (const auto& path : kept_socket_directories()) {
    auto place = resolve_path(path);
    const auto is_shown = [&](const std::string& tree) { return plan::is_at_or_below(place->canonical, tree) || plan::is_at_or_below(tree, place->canonical); };
    if (!place || std::ranges::none_of(trees, is_shown)) continue;
    if (place->type == plan::FileType::missing) {
      if (auto made = open_private(path); !made) return std::unexpected(made.error());
      place = resolve_path(path);
      if (!place) return std::unexpected(place.error());
    }
    facts.socket_dirs.push_back(std::move(*place));
  }
  return {};
}

}  // namespace sandy::host
