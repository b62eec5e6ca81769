#include "plan/plan.h"

#include <algorithm>
#include <iterator>

#include "plan/environment.h"
#include "plan/filesystem_view.h"
#include "plan/resolved_paths.h"

namespace sandy::plan {

const std::vector<std::string>& needed_bwrap_options() {
  static const std::vector<std::string> options{
      "--args",        "--as-pid-1",     "--bind-fd",    "--chdir",     "--dev",         "--dir",         "--disable-userns",
      "--gid",         "--hostname",     "--new-session", "--perms",    "--proc",        "--remount-ro",  "--ro-bind-data",
      "--ro-bind-fd",  "--seccomp",      "--size",       "--symlink",   "--tmpfs",       "--uid",         "--unshare-cgroup-try",
      "--unshare-ipc", "--unshare-net",  "--unshare-pid", "--unshare-user", "--unshare-uts"};
  return options;
}

std::string bwrap_remedy(const std::vector<std::string>& lacking) {
  if (lacking.empty()) return {};
  const bool only_descriptors = std::ranges::all_of(lacking, [](const std::string& option) { return option.ends_with("bind-fd"); });
  // --bind-fd came with 0.10.0, and to the distributions' older versions with the fix of CVE-2024-42472.
  if (only_descriptors) {
    return "install bubblewrap 0.10.0 or newer, or your distribution's security update of it (Debian 12: 0.8.0-2+deb12u1): sudo apt-get update && "
           "sudo apt-get install bubblewrap";
  }
  return "install bubblewrap 0.8.0 or newer (the oldest that has all but --bind-fd, which Debian 12's 0.8.0 and every 0.10.0 have too): sudo "
         "apt-get update && sudo apt-get install bubblewrap";
}

std::uint64_t default_memory(std::uint64_t ram) {
  constexpr std::uint64_t kMost = std::uint64_t{4} << 30;
  return ram == 0 ? kMost : std::min(ram / 2, kMost);
}

std::vector<std::string> keys_of_set(const policy::GroupLimits& limits) {
  std::vector<std::string> out;
  policy::GroupLimits::for_each(limits, limits, [&](const auto& value, const auto&, const char* key) {
    if (value) out.emplace_back(key);
  });
  return out;
}

std::optional<CgroupPlan> plan_cgroup(const policy::GroupLimits& limits, const CgroupFacts& here, std::uint64_t ram) {
  if (here.way == CgroupFacts::Way::none) return {};
  CgroupPlan out{here.way, here.parent, {}};
  auto& planned = out.limits;
  if (here.memory) planned.memory = limits.memory.value_or(default_memory(ram));
  if (here.swap) planned.swap = limits.swap.value_or(kDefaultSwap);
  if (here.cpus) planned.cpus = limits.cpus;
  if (here.pids) planned.pids = limits.pids.value_or(kDefaultPids);
  if (here.io) planned.io_read = limits.io_read;
  if (here.io) planned.io_write = limits.io_write;
  return out;
}

std::vector<std::string> rule_lines(const policy::Network& network) {
  std::vector<std::string> out;
  for (const auto& rule : network.allow) out.push_back("allow " + rule.text());
  for (const auto& rule : network.deny) out.push_back("deny " + rule.text());
  for (const auto& rule : network.allow_private) out.push_back("private " + rule.text());
  if (network.real_dns_answers) out.emplace_back("real");
  return out;
}

Result<SandboxPlan> make_plan(const policy::SandboxPolicy& policy, const HostFacts& facts) {
  SandboxPlan plan;
  plan.bwrap = facts.bwrap;
  std::vector<std::string> lacking;
  std::ranges::copy_if(needed_bwrap_options(), std::back_inserter(lacking), [&](const auto& option) { return !facts.bwrap_options.contains(option); });
  if (!lacking.empty()) {
    std::string names;
    for (const auto& option : lacking) names += (names.empty() ? "" : ", ") + option;
    return fail("bubblewrap", printable(facts.bwrap) + " is too old: it lacks " + names, bwrap_remedy(lacking));
  }
  if (auto r = check_resolved(policy->filesystem, facts); !r) return std::unexpected(r.error());
  plan.cgroup = plan_cgroup(policy->limits, facts.cgroup, facts.ram);
  if (!plan.cgroup || !plan.cgroup->limits.memory) plan.watched_memory = policy->limits.memory.value_or(default_memory(facts.ram));
  if (!plan.cgroup || !plan.cgroup->limits.pids) plan.watched_pids = policy->limits.pids.value_or(kDefaultPids);
  if (auto r = plan_filesystem(policy.fields(), facts, plan); !r) return std::unexpected(r.error());
  if (policy->network.mode == policy::NetworkMode::allowlist) plan.network = NetworkPlan{rule_lines(policy->network), policy->network.publish};
  const auto& workspace = policy->filesystem.workspace;
  plan.io_path = workspace.mode == policy::WorkspaceMode::bind ? workspace.path : facts.state_dir.canonical;
  plan.cwd = policy->process.cwd.empty() ? plan.workspace : policy->process.cwd;
  plan.hostname = policy->process.hostname;
  plan.uid = policy->process.uid;
  plan.gid = policy->process.gid;
  if (facts.uid == 0) plan.host_ids = {kNobody, kNobody};
  plan.seccomp = policy->seccomp;
  plan.slots.push_back({.kind = FdSlot::Kind::seccomp, .text = policy->seccomp.base == policy::SeccompBase::file ? policy->seccomp.file
                                                               : policy->seccomp.base == policy::SeccompBase::strict ? "strict" : "default"});
  plan.environment = plan_environment(policy.fields(), facts, plan);
  plan.private_variables = policy->environment.pass;
  for (const auto& [name, value] : policy->environment.set) plan.private_variables.push_back(name);
  plan.open_files = policy->limits.open_files.value_or(0);
  plan.file_size = policy->limits.file_size.value_or(0);
  plan.log_size = policy->limits.log_size.value_or(kDefaultLogBytes);
  plan.wall_time_ms = policy->limits.wall_time_ms.value_or(0);
  for (const auto& key : policy.degraded()) plan.degraded.emplace_back(key);
  return plan;
}

std::vector<std::string> bwrap_options(const SandboxPlan& plan, const std::vector<int>& fds) {
  std::vector<std::string> out{"--unshare-user", "--unshare-ipc", "--unshare-pid", "--unshare-uts", "--unshare-cgroup-try",
                               "--disable-userns", "--new-session", "--as-pid-1",
                               "--uid", std::to_string(plan.uid), "--gid", std::to_string(plan.gid), "--hostname", plan.hostname};
  // With a network, sandy-launch has made the namespace, and bubblewrap stays in it.
  if (!plan.network) out.insert(out.begin() + 3, "--unshare-net");
  auto octal = [](unsigned mode) {
    std::string text;
    for (int shift = 9; shift >= 0; shift -= 3) text += static_cast<char>('0' + (mode >> shift & 7));
    return text;
  };
  auto add = [&](std::initializer_list<std::string> words) { out.insert(out.end(), words); };
  for (const MountStep& step : plan.mounts) {
    if (step.permissions) add({"--perms", octal(*step.permissions)});
    const std::string fd = step.slot < fds.size() ? std::to_string(fds[step.slot]) : "?";
    using Kind = MountStep::Kind;
    switch (step.kind) {
      case Kind::bind: add({"--bind-fd", fd, step.dest}); break;
      case Kind::ro_bind: add({"--ro-bind-fd", fd, step.dest}); break;
      case Kind::symlink: add({"--symlink", step.target, step.dest}); break;
      case Kind::tmpfs: add({"--size", std::to_string(step.size), "--tmpfs", step.dest}); break;
      case Kind::proc: add({"--proc", step.dest}); break;
      case Kind::dev: add({"--dev", step.dest}); break;
      case Kind::directory: add({"--dir", step.dest}); break;
      case Kind::ro_data: add({"--ro-bind-data", fd, step.dest}); break;
      case Kind::remount_ro: add({"--remount-ro", step.dest}); break;
    }
  }
  for (std::size_t i = 0; i < plan.slots.size(); ++i) {
    if (plan.slots[i].kind == FdSlot::Kind::seccomp) add({"--seccomp", i < fds.size() ? std::to_string(fds[i]) : "?"});
  }
  // The agent needs no working directory, and the workspace may be one that only its commands should enter.
  add({"--chdir", "/"});
  return out;
}

}  // namespace sandy::plan
