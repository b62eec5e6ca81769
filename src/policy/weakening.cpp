#include "policy/weakening.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "policy/paths.h"

namespace sandy::policy {
namespace {

// Already readable in every sandbox (design: the default view).
constexpr std::array<std::string_view, 7> kDefaultView{"/usr",   "/bin",   "/sbin",  "/lib",
                                                       "/lib32", "/lib64", "/libx32"};

// Where the host's services make sockets to listen on. Those that are there when a sandbox starts
// are hidden from it; later ones can't be.
constexpr std::array<std::string_view, 3> kSocketDirectories{"/run", "/var/run", "/tmp"};

bool in_default_view(std::string_view path) {
  return std::ranges::any_of(kDefaultView,
                             [&](std::string_view tree) { return is_within(path, tree); });
}

bool may_hold_sockets(std::string_view path) {
  return std::ranges::any_of(kSocketDirectories, [&](std::string_view tree) {
    return is_within(path, tree) || is_within(tree, path);
  });
}

void add_filesystem(const Filesystem& filesystem, const std::set<std::string>& sockets,
                    std::vector<Weakening>& out) {
  if (filesystem.workspace.mode == WorkspaceMode::bind) {
    out.push_back({"filesystem.workspace.path", "commands can change and delete what is in " +
                                                    printable(filesystem.workspace.path) +
                                                    " on the host"});
  }
  for (const PathRule& rule : filesystem.rules) {
    const std::string path = printable(rule.path);
    if (rule.access != Access::deny && sockets.contains(rule.path)) {
      out.push_back({rule.key, "commands can connect to the host's socket " + path +
                                   ", and command the program behind it"});
      continue;
    }
    if (rule.access == Access::write) {
      out.push_back(
          {rule.key, "commands can change and delete what is in " + path + " on the host"});
    } else if (rule.access == Access::read && !in_default_view(rule.path)) {
      out.push_back({rule.key, "commands can read what is in " + path + " on the host"});
    }
    if (rule.access != Access::deny && may_hold_sockets(rule.path)) {
      out.push_back({rule.key, "commands can connect to sockets that the host's programs make in " +
                                   path + " while the sandbox runs"});
    }
  }
  if (filesystem.unsafe_broad_workspace) {
    out.push_back({"filesystem.unsafe_broad_workspace",
                   "whole systems, homes and shared directories may be writable: commands can then "
                   "change what the host runs"});
  }
}

void add_network(const Network& network, std::vector<Weakening>& out) {
  if (network.mode != NetworkMode::allowlist) return;
  for (const NetworkRule& rule : network.allow) {
    out.push_back({"network.allow", "commands can exchange data with " + rule.text()});
  }
  for (const NetworkRule& rule : network.allow_private) {
    out.push_back({"network.allow_private",
                   "commands can reach " + rule.text() + " in the private network"});
  }
  if (network.real_dns_answers) {
    out.push_back({"network.dns_answers", "this machine's resolver is asked when a command looks an allowed name up, and not only when it connects"});
  }
  for (const PublishedPort& port : network.publish) {
    out.push_back({"network.publish", "every program on this machine can connect to the sandbox's port " + std::to_string(port.port)});
  }
}

void add_seccomp(const Seccomp& seccomp, std::vector<Weakening>& out) {
  if (seccomp.base == SeccompBase::file) {
    out.push_back({"seccomp.file", "the system calls are those that " + printable(seccomp.file) +
                                       " allows, in place of the default policy"});
  }
  if (seccomp.unsafe_ptrace) {
    out.push_back({"seccomp.unsafe_ptrace",
                   "commands can trace each other in the sandbox, which opens much of the kernel's "
                   "ptrace code to them"});
  }
}

}  // namespace

std::vector<Weakening> weakenings(const SandboxPolicy& policy,
                                  const std::set<std::string>& sockets) {
  std::vector<Weakening> out;
  add_filesystem(policy->filesystem, sockets, out);
  add_network(policy->network, out);
  if (policy->limits.best_effort) {
    out.push_back({"limits.best_effort",
                   "limits that this machine can't enforce are left out, and the sandbox starts "
                   "all the same"});
  }
  add_seccomp(policy->seccomp, out);
  for (const std::string& name : policy->environment.pass) {
    out.push_back(
        {"environment.pass", "commands see the caller's " + name + ", which may hold a secret"});
  }
  const Process defaults;
  if (policy->process.uid != defaults.uid) {
    out.push_back(
        {"process.uid", "commands see themselves as user " + std::to_string(policy->process.uid) +
                            " instead of 1000: a name alone, without its rights on the host"});
  }
  if (policy->process.gid != defaults.gid) {
    out.push_back(
        {"process.gid", "commands see themselves as group " + std::to_string(policy->process.gid) +
                            " instead of 1000: a name alone, without its rights on the host"});
  }
  return out;
}

}  // namespace sandy::policy
