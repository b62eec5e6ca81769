#include "plan/environment.h"

#include <algorithm>

#include "plan/path_text.h"

namespace sandy::plan {
namespace {

const std::vector<std::string> kUsualPath{"/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"};

// Whether the plan shows the directory at this canonical host path at its own place: what was mounted last at it or
// above it covers what was there before.
bool is_shown(const std::string& path, const SandboxPlan& plan) {
  const auto last = std::find_if(plan.mounts.rbegin(), plan.mounts.rend(), [&](const MountStep& step) {
    return step.kind != MountStep::Kind::remount_ro && step.kind != MountStep::Kind::symlink && is_at_or_below(path, step.dest);
  });
  if (last == plan.mounts.rend() || (last->kind != MountStep::Kind::ro_bind && last->kind != MountStep::Kind::bind)) return false;
  const FdSlot& slot = plan.slots[last->slot];
  return slot.kind == FdSlot::Kind::host_path && slot.text == last->dest;
}

}  // namespace

std::vector<std::string> split_path(const std::string& path) {
  std::vector<std::string> out;
  std::size_t start = 0;
  while (start <= path.size()) {
    const auto colon = std::min(path.find(':', start), path.size());
    const std::string entry = path.substr(start, colon - start);
    // Relative and empty entries would mean the sandbox's working directory.
    if (entry.starts_with('/') && std::ranges::find(out, entry) == out.end()) out.push_back(entry);
    start = colon + 1;
  }
  return out;
}

std::string sandbox_path(const HostFacts& facts, const SandboxPlan& plan, std::vector<std::string>* lost) {
  std::vector<std::string> entries = kUsualPath;
  const auto caller = facts.environment.find("PATH");
  for (const auto& entry : split_path(caller == facts.environment.end() ? "" : caller->second)) {
    if (std::ranges::find(entries, entry) != entries.end()) continue;
    const auto fact = facts.paths.find(entry);
    const bool there = fact != facts.paths.end() && fact->second.type == FileType::directory;
    if (there && is_shown(fact->second.canonical, plan)) {
      if (std::ranges::find(entries, fact->second.canonical) == entries.end()) entries.push_back(fact->second.canonical);
    } else if (there && lost != nullptr) {
      lost->push_back(entry);
    }
  }
  const std::string extra = kExtraPrograms;
  if (std::ranges::any_of(plan.mounts, [&](const MountStep& step) { return step.dest.starts_with(extra + "/"); })) entries.push_back(extra);
  std::string out;
  for (const auto& entry : entries) out += (out.empty() ? "" : ":") + entry;
  return out;
}

std::vector<std::string> plan_environment(const policy::PolicyFields& policy, const HostFacts& facts, const SandboxPlan& plan) {
  std::map<std::string, std::string> values{
      {"HOME", plan.home},     {"LANG", "C.UTF-8"}, {"LOGNAME", "sandbox"}, {"PATH", sandbox_path(facts, plan)},
      {"SHELL", "/bin/sh"},    {"TERM", "dumb"},    {"TMPDIR", "/tmp"},     {"USER", "sandbox"},
  };
  for (const auto& name : policy.environment.pass) {
    if (const auto it = facts.environment.find(name); it != facts.environment.end()) values[name] = it->second;
  }
  for (const auto& [name, value] : policy.environment.set) values[name] = value;
  std::vector<std::string> out;
  for (const auto& [name, value] : values) out.push_back(name + "=" + value);
  return out;
}

}  // namespace sandy::plan
