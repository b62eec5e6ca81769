#include "cgroup/running.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "cgroup/cgroup_text.h"
#include "host/proc_text.h"

namespace sandy::cgroup {
namespace {

namespace fs = std::filesystem;

constexpr int kMaxDepth = 12;
constexpr std::size_t kIdLength = 16;

// "sandy-ID.scope", or in a delegated directory "sandy-ID".
std::string id_in(std::string_view name) {
  if (!name.starts_with("sandy-")) return {};
  name.remove_prefix(6);
  if (name.ends_with(".scope")) name.remove_suffix(6);
  const bool is_id = name.size() == kIdLength && std::ranges::all_of(name, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
  return is_id ? std::string(name) : std::string();
}

void look(const std::string& top, std::vector<Running>& out) {
  std::error_code error;
  for (fs::recursive_directory_iterator at(top, fs::directory_options::skip_permission_denied, error), end; !error && at != end; at.increment(error)) {
    std::error_code gone;
    if (!at->is_directory(gone)) continue;
    const auto id = id_in(at->path().filename().string());
    if (!id.empty()) {
      at.disable_recursion_pending();
      if (auto group = Directory::open(at->path()); group && group->has("commands")) out.push_back({id, std::move(*group)});
    }
    if (at.depth() >= kMaxDepth) at.disable_recursion_pending();
  }
}

}  // namespace

std::vector<Running> running_sandboxes() {
  std::vector<Running> out;
  if (::geteuid() == 0) {
    look(kMount, out);
  } else {
    look(std::string(kMount).append("/user.slice/user-").append(std::to_string(::geteuid())).append(".slice"), out);
    // Where we are, and in a delegated directory beside that.
    if (const auto own = unified_path(host::read_text("/proc/self/cgroup"))) look(fs::path(std::string(kMount).append(*own)).parent_path(), out);
  }
  std::ranges::sort(out, {}, &Running::id);
  const auto same = std::ranges::unique(out, {}, &Running::id);
  out.erase(same.begin(), same.end());
  return out;
}

Usage usage_of(const Running& sandbox) {
  Usage out = read_usage(sandbox.group);
  const auto commands = Directory::open(sandbox.group.path() + "/commands");
  if (!commands) return out;
  out.forks_refused = refused_in(*commands);
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(commands->path(), error)) {
    const auto group = entry.is_directory(error) ? Directory::open(entry.path()) : Result<Directory>(Directory());
    if (!group || !*group) continue;
    out.forks_refused += refused_in(*group);
    const auto pids = process_ids(group->read("cgroup.procs"));
    // What waits to become a command is still the agent's program.
    std::string name;
    if (pids.size() == 1) name = host::read_line(("/proc/" + std::to_string(pids.front()) + "/comm").c_str());
    if (name != "sandy-agent") out.processes += single_value(group->read("pids.current")).value_or(0);
  }
  return out;
}

policy::GroupLimits limits_of(const Running& sandbox) {
  policy::GroupLimits out;
  if (const auto commands = Directory::open(sandbox.group.path() + "/commands")) {
    out.memory = single_value(commands->read("memory.max"));
    out.swap = single_value(commands->read("memory.swap.max"));
    if (const auto pids = single_value(commands->read("pids.max"))) out.pids = *pids - std::min<std::uint64_t>(*pids, 1);
  }
  // "QUOTA PERIOD" in microseconds, or "max PERIOD".
  const auto cpu = sandbox.group.read("cpu.max");
  const auto quota = single_value(cpu), period = single_value(std::string_view(cpu).substr(std::min(cpu.find(' '), cpu.size())));
  if (quota && period && *period > 0) out.cpus = static_cast<double>(*quota) / static_cast<double>(*period);
  const auto io = sandbox.group.read("io.max");
  out.io_read = io_limit(io, "rbps");
  out.io_write = io_limit(io, "wbps");
  return out;
}

}  // namespace sandy::cgroup
