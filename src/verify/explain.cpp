#include "verify/explain.h"

#include <algorithm>

#include "base/error.h"
#include "policy/ip_address.h"
#include "policy/paths.h"
#include "proxy/allowlist.h"

namespace sandy::verify {
namespace {

proxy::Allowlist allowlist(const policy::Network& network) { return {network.allow, network.deny, network.allow_private}; }

std::string network_words(const proxy::Decision& decision) { return decision.allowed ? "network: " + printable(decision.reason) : ""; }

}  // namespace

std::string shown_by(const policy::PolicyFields& policy, const std::vector<std::string>& paths, bool writing, const std::map<std::string, std::string>& targets) {
  const auto target = [&](const std::string& written) -> const std::string& {
    const auto it = targets.find(written);
    return it == targets.end() ? written : it->second;
  };
  for (const auto& path : paths) {
    const policy::PathRule* rule = nullptr;  // the most specific one
    for (const auto& candidate : policy.filesystem.rules) {
      const std::string& shown = target(candidate.path);
      if (policy::is_within(path, shown) && (rule == nullptr || shown.size() >= target(rule->path).size())) rule = &candidate;
    }
    const auto& workspace = policy.filesystem.workspace;
    const bool in_workspace = workspace.mode == policy::WorkspaceMode::bind && policy::is_within(path, target(workspace.path)) &&
                              (rule == nullptr || target(rule->path).size() < target(workspace.path).size());
    if (in_workspace) return printable(workspace.path_key) + " " + printable(workspace.path);
    if (rule == nullptr || rule->access == policy::Access::deny || (writing && rule->access != policy::Access::write)) continue;
    return printable(rule->key) + " " + printable(rule->path);
  }
  return {};
}

std::string permitted_by(const policy::PolicyFields& policy, bool traces) {
  if (traces && policy.seccomp.unsafe_ptrace) return "seccomp.unsafe_ptrace";
  if (policy.seccomp.base == policy::SeccompBase::file) return "seccomp.file " + printable(policy.seccomp.file);
  return {};
}

std::string passed_by(const policy::PolicyFields& policy, const std::string& name) {
  if (std::ranges::find(policy.environment.pass, name) != policy.environment.pass.end()) return "environment.pass " + printable(name);
  if (policy.environment.set.contains(name)) return "environment.set " + printable(name);
  return {};
}

std::string reached_by(const policy::PolicyFields& policy, const std::string& host, std::uint16_t port) {
  const auto rules = allowlist(policy.network);
  if (const auto address = policy::parse_ip_address(host)) return network_words(rules.decide(*address, port));
  return network_words(rules.decide(host, port));
}

std::string resolved_by(const policy::PolicyFields& policy, const std::string& name) { return network_words(allowlist(policy.network).decide_name(name)); }

}  // namespace sandy::verify
