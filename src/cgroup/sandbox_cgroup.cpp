#include "cgroup/sandbox_cgroup.h"

#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <utility>

#include "cgroup/cgroup_text.h"
#include "host/proc_text.h"
#include "cgroup/support.h"

namespace sandy::cgroup {
namespace {

using Way = plan::CgroupFacts::Way;

// A scope's own processes beside those of commands: bubblewrap, the agent with its threads, its children that wait for a command's end.
constexpr std::uint64_t kOwnTasks = 512;
constexpr std::uint64_t kOwnMemory = 64 << 20;
constexpr std::uint64_t kPeriodUs = 100'000;

Error no_disk(const std::string& path) {
  return {"limits of I/O", "\"" + printable(path) + "\" is on no disk that can be held back (a file system in memory, or of a network)", "use a workspace on a disk, or leave them out"};
}

// The whole disk that a file is on, as "MAJOR:MINOR": io.max takes no partitions.
std::optional<std::string> disk_of(const std::string& path) {
  struct stat st{};
  if (::stat(path.c_str(), &st) != 0 || major(st.st_dev) == 0) return {};
  const std::string number = std::to_string(major(st.st_dev)) + ":" + std::to_string(minor(st.st_dev));
  const std::string device = "/sys/dev/block/" + number;
  if (::access((device + "/partition").c_str(), F_OK) != 0) return number;
  auto whole = host::read_text((device + "/../dev").c_str());
  if (whole.ends_with('\n')) whole.pop_back();
  return whole;
}

// Processes can't be in a group that has controllers for others below it: those of a delegated one, of which we are one, get a group there.
Result<void> vacate(const Directory& parent) {
  auto pids = process_ids(parent.read("cgroup.procs"));
  if (pids.empty()) return {};
  const auto host = parent.below(kHostGroup);
  if (!host) return std::unexpected(host.error());
  for (int turn = 0; !pids.empty() && turn < 10; ++turn) {
    for (const int pid : pids) (void)host->add(pid);  // one that has ended meanwhile is no matter
    pids = process_ids(parent.read("cgroup.procs"));
  }
  if (!pids.empty()) return fail("cgroup " + printable(parent.path()), "has processes that can't be put elsewhere", "leave the limits out, or set limits.best_effort");
  return {};
}

// What killed ones of us have left: their processes ended with them.
void sweep_parent(const Directory& parent) {
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(parent.path(), ignored)) {
    const auto name = entry.path().filename().string();
    if (!name.starts_with("sandy-") || name == kHostGroup) continue;
    const auto group = Directory::open(entry.path());
    if (!group || group->populated()) continue;
    const auto commands = Directory::open(group->path() + "/commands");
    if (commands) {
      for (const auto& command : std::filesystem::directory_iterator(commands->path(), ignored)) {
        if (command.is_directory(ignored)) (void)commands->remove(command.path().filename());
      }
    }
    for (const char* part : {"commands", "own"}) (void)group->remove(part);
    (void)parent.remove(name);
  }
}

}  // namespace

ScopeLimits SandboxCgroup::scope_limits(const plan::CgroupPlan& limits) const {
  ScopeLimits out;
  if (limits.memory) out.memory = *limits.memory + kOwnMemory;
  out.swap = limits.swap;
  out.cpus = limits.cpus;
  if (limits.pids) out.tasks = *limits.pids + kOwnTasks;
  out.io_read = limits.io_read;
  out.io_write = limits.io_write;
  out.io_path = io_path_;
  return out;
}

asio::awaitable<Result<std::unique_ptr<SandboxCgroup>>> SandboxCgroup::make(asio::any_io_executor executor, plan::CgroupPlan plan, std::string id, pid_t pid,
                                                                            std::string io_path) {
  std::unique_ptr<SandboxCgroup> self(new SandboxCgroup(std::move(plan), std::move(id), std::move(io_path)));
  if (self->plan_.way == Way::systemd) {
    auto bus = SystemdBus::shared(executor);
    if (!bus) co_return std::unexpected(bus.error());
    self->bus_ = std::move(*bus);
    auto limits = self->scope_limits(self->plan_);
    auto started = co_await self->bus_->start_scope(self->scope(), "Sandy: a sandbox of commands that an agent runs (" + self->id_ + ")", pid, std::move(limits));
    if (!started) co_return std::unexpected(started.error());
    const auto path = unified_path(host::read_text(("/proc/" + std::to_string(pid) + "/cgroup").c_str()));
    if (!path || !path->ends_with("/" + self->scope())) co_return fail("cgroup", "the sandbox's process is not in its scope: " + printable(path.value_or("none")));
    auto group = Directory::open(kMount + *path);
    if (!group) co_return std::unexpected(group.error());
    self->group_ = std::move(*group);
    if (auto checked = self->check_scope(); !checked) co_return std::unexpected(checked.error());
  } else {
    auto parent = Directory::open(self->plan_.parent);
    if (!parent) co_return std::unexpected(parent.error());
    self->parent_ = std::move(*parent);
    if (auto vacated = vacate(self->parent_); !vacated) co_return std::unexpected(vacated.error());
    sweep_parent(self->parent_);
    for (const char* controller : {"+memory", "+pids", "+cpu", "+io"}) (void)self->parent_.write("cgroup.subtree_control", controller);
    auto group = self->parent_.make("sandy-" + self->id_);
    if (!group) co_return std::unexpected(group.error());
    self->group_ = std::move(*group);
    if (auto written = self->write_limits(self->plan_); !written) co_return std::unexpected(written.error());
  }
  if (auto built = self->build(pid); !built) co_return std::unexpected(built.error());
  self->built_ = true;
  co_return std::move(self);
}

// What systemd can't set it says in its log alone: no disk below a file, a controller that it doesn't have after all. Memory and processes are limited in `commands` too.
Result<void> SandboxCgroup::check_scope() const {
  if ((plan_.io_read || plan_.io_write) && group_.read("io.max").empty()) return std::unexpected(no_disk(io_path_));
  if (plan_.cpus && !single_value(group_.read("cpu.max"))) return fail(scope(), "systemd has not set its limit of CPU", "look at `systemctl --user status`; or leave the limit out, or set limits.best_effort");
  return {};
}

Result<void> SandboxCgroup::build(pid_t pid) {
  auto own = group_.make("own");
  if (!own) return std::unexpected(own.error());
  own_ = std::move(*own);
  if (auto added = own_.add(pid); !added) return added;
  auto commands = group_.make("commands");
  if (!commands) return std::unexpected(commands.error());
  commands_ = std::move(*commands);
  const auto given = group_.read("cgroup.controllers");
  for (const char* controller : {"memory", "pids"}) {
    if (!has_word(given, controller)) continue;
    const std::string text = std::string("+") + controller;
    if (auto r = group_.write("cgroup.subtree_control", text); !r) return r;
    if (auto r = commands_.write("cgroup.subtree_control", text); !r) return r;
  }
  return limit_commands(plan_);
}

Result<void> SandboxCgroup::limit_commands(const plan::CgroupPlan& limits) const {
  if (limits.memory) {
    if (auto r = commands_.write("memory.max", std::to_string(*limits.memory)); !r) return r;
  }
  if (limits.swap) {
    if (auto r = commands_.write("memory.swap.max", std::to_string(*limits.swap)); !r) return r;
  }
  // And one for the process that waits for the next command.
  if (limits.pids) return commands_.write("pids.max", std::to_string(*limits.pids + 1));
  return {};
}

Result<void> SandboxCgroup::write_limits(const plan::CgroupPlan& limits) const {
  if (limits.memory) {
    if (auto r = group_.write("memory.max", std::to_string(*limits.memory + kOwnMemory)); !r) return r;
  }
  if (limits.swap) {
    if (auto r = group_.write("memory.swap.max", std::to_string(*limits.swap)); !r) return r;
  }
  if (limits.cpus) {
    const auto quota = static_cast<std::uint64_t>(*limits.cpus * static_cast<double>(kPeriodUs));
    if (auto r = group_.write("cpu.max", std::to_string(std::max<std::uint64_t>(quota, 1'000)) + " " + std::to_string(kPeriodUs)); !r) return r;
  }
  if (limits.pids) {
    if (auto r = group_.write("pids.max", std::to_string(*limits.pids + kOwnTasks)); !r) return r;
  }
  if (!limits.io_read && !limits.io_write) return {};
  const auto disk = disk_of(io_path_);
  if (!disk) return std::unexpected(no_disk(io_path_));
  std::string line = *disk;
  if (limits.io_read) line += " rbps=" + std::to_string(*limits.io_read);
  if (limits.io_write) line += " wbps=" + std::to_string(*limits.io_write);
  return group_.write("io.max", line);
}

SandboxCgroup::~SandboxCgroup() {
  if (!group_) return;
  // A start that fails is told by what asked for it, and not by its process having been killed.
  if (built_ && group_.populated()) group_.kill();
  // A scope is systemd's to remove, with all that is in it, once it has no process.
  if (!parent_) return;
  for (const auto& groups : {std::cref(groups_), std::cref(ended_)}) {
    for (const auto& [number, group] : groups.get()) (void)commands_.remove(std::to_string(number));
  }
  for (const char* name : {"commands", "own"}) (void)group_.remove(name);
  (void)parent_.remove("sandy-" + id_);
}

Result<std::uint32_t> SandboxCgroup::place(int inside) {
  end_command(std::exchange(waiting_, 0));
  for (const int pid : process_ids(own_.read("cgroup.procs"))) {
    if (innermost_pid(host::read_text(("/proc/" + std::to_string(pid) + "/status").c_str())) != inside) continue;
    const std::uint32_t number = next_++;
    auto group = commands_.make(std::to_string(number));
    if (!group) return std::unexpected(group.error());
    if (auto added = group->add(pid); !added) {
      (void)commands_.remove(std::to_string(number));
      return std::unexpected(added.error());
    }
    groups_[number] = std::move(*group);
    waiting_ = number;
    return number;
  }
  return fail("cgroup", "the agent's process " + std::to_string(inside) + " is not in the sandbox's group");
}

bool SandboxCgroup::begin_command(std::uint32_t group) {
  if (group == 0 || group != waiting_) return false;
  waiting_ = 0;
  return true;
}

Usage SandboxCgroup::command_usage(std::uint32_t command) const {
  Usage out;
  const auto found = groups_.find(command);
  if (found == groups_.end()) return out;
  const auto& group = found->second;
  out.memory_peak = single_value(group.read("memory.peak"));
  out.cpu_us = flat_value(group.read("cpu.stat"), "usage_usec").value_or(0);
  out.oom_kills = flat_value(group.read("memory.events"), "oom_kill").value_or(0);
  return out;
}

std::uint64_t SandboxCgroup::throttled_us() const { return plan_.cpus ? flat_value(group_.read("cpu.stat"), "throttled_usec").value_or(0) : 0; }

std::uint64_t SandboxCgroup::forks_refused() const {
  if (!plan_.pids) return 0;
  // Counted where the limit is, and before Linux 6.11 where the fork was.
  std::uint64_t out = gone_forks_refused_ + refused_in(commands_);
  for (const auto* groups : {&groups_, &ended_}) {
    for (const auto& [number, group] : *groups) out += refused_in(group);
  }
  return out;
}

void SandboxCgroup::kill_command(std::uint32_t command) const {
  if (const auto found = groups_.find(command); found != groups_.end()) found->second.kill();
}

void SandboxCgroup::end_command(std::uint32_t command) {
  const auto found = groups_.find(command);
  if (found == groups_.end()) return;
  ended_[command] = std::move(found->second);
  groups_.erase(found);
  sweep();
}

void SandboxCgroup::sweep() {
  std::erase_if(ended_, [&](const auto& entry) {
    const auto refused = plan_.pids ? refused_in(entry.second) : 0;
    const bool gone = commands_.remove(std::to_string(entry.first));
    if (gone) gone_forks_refused_ += refused;
    return gone;
  });
}

Usage SandboxCgroup::usage() const {
  Usage out = read_usage(group_);
  out.forks_refused = forks_refused();
  const auto processes = single_value(commands_.read("pids.current")).value_or(0);
  out.processes = processes - std::min(processes, waiting_processes());
  return out;
}

std::string SandboxCgroup::dying_process() const {
  // flags in /proc/PID/stat (proc_pid_stat(5)), <linux/sched.h>: PF_EXITING, PF_SIGNALED.
  constexpr unsigned long kExiting = 0x4, kSignaled = 0x400;
  for (const auto& [number, group] : groups_) {
    for (const int pid : process_ids(group.read("cgroup.procs"))) {
      const auto stat = host::read_text(("/proc/" + std::to_string(pid) + "/stat").c_str());
      const auto open = stat.find('('), close = stat.rfind(')');
      if (open == std::string::npos || close == std::string::npos || close < open) continue;
      // Fields after the name: state ppid pgrp session tty_nr tpgid flags.
      std::size_t at = close + 1;
      for (int field = 0; field < 6 && at != std::string::npos; ++field) at = stat.find(' ', at + 1);
      const unsigned long flags = at == std::string::npos ? 0 : std::strtoul(stat.c_str() + at, nullptr, 10);
      if ((flags & (kExiting | kSignaled)) != 0) return stat.substr(open + 1, close - open - 1);
    }
  }
  return {};
}

asio::awaitable<Result<void>> SandboxCgroup::set_limits(plan::CgroupPlan limits) {
  if (auto limited = limit_commands(limits); !limited) co_return limited;
  if (bus_) {
    auto set = scope_limits(limits);
    auto done = co_await bus_->set_limits(scope(), std::move(set));
    if (!done) co_return done;
  } else if (auto written = write_limits(limits); !written) {
    co_return written;
  }
  const auto take = [](auto& old, const auto& given) {
    if (given) old = given;
  };
  take(plan_.memory, limits.memory);
  take(plan_.swap, limits.swap);
  take(plan_.cpus, limits.cpus);
  take(plan_.pids, limits.pids);
  take(plan_.io_read, limits.io_read);
  take(plan_.io_write, limits.io_write);
  if (bus_) co_return check_scope();
  co_return Result<void>();
}

}  // namespace sandy::cgroup
