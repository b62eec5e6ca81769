#include "cgroup/sandbox_cgroup.h"

#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <filesystem>
#include <functional>
#include <limits>
#include <ranges>
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

// Of a limit that there is none of any more.
constexpr std::uint64_t kNoLimit = UINT64_MAX;

std::uint64_t raised(std::uint64_t limit, std::uint64_t by) { return limit > kNoLimit - by ? kNoLimit : limit + by; }

std::string in_words(std::uint64_t limit) { return limit == kNoLimit ? "max" : std::to_string(limit); }

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
  auto there = parent.read("cgroup.procs");
  if (there.empty()) return {};
  const auto host = parent.below(kHostGroup);
  if (!host) return std::unexpected(host.error());
  for (int turn = 0; !there.empty() && turn < 10; ++turn) {
    for (const int pid : process_ids(there)) (void)host->add(pid);  // one that has ended meanwhile is no matter
    there = parent.read("cgroup.procs");
  }
  if (there.empty()) return {};
  const std::string whose = process_ids(there).empty() ? "that are in another PID namespace, and so" : "that";
  return fail("cgroup " + printable(parent.path()), "has processes " + whose + " can't be put elsewhere", "put them into a cgroup of their own; or leave the limits out, or set limits.best_effort");
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

ScopeLimits SandboxCgroup::scope_limits(const policy::GroupLimits& limits) const {
  ScopeLimits out{limits, io_path_};
  if (out.memory) out.memory = raised(*out.memory, kOwnMemory);
  if (out.pids) out.pids = raised(*out.pids, kOwnTasks);
  return out;
}

std::unique_ptr<SandboxCgroup> SandboxCgroup::begin(asio::any_io_executor executor, plan::CgroupPlan plan, std::string id, pid_t pid, std::string io_path) {
  std::unique_ptr<SandboxCgroup> self(new SandboxCgroup(std::move(plan), std::move(id), pid, std::move(io_path)));
  if (self->plan_.way != Way::systemd) return self;
  auto bus = SystemdBus::shared(executor);
  if (bus) {
    self->bus_ = std::move(*bus);
    self->asked_ = self->bus_->ask_for_scope({self->scope(), "Sandy: a sandbox of commands that an agent runs (" + self->id_ + ")", pid, self->scope_limits(self->plan_.limits)});
  } else {
    self->asked_ = std::unexpected(bus.error());
  }
  return self;
}

void SandboxCgroup::advance() {
  if (bus_ && bus_->alive()) bus_->advance();
}

asio::awaitable<Result<void>> SandboxCgroup::enter_scope() {
  auto asked = std::exchange(asked_, nullptr);
  if (!asked) co_return std::unexpected(asked.error());
  auto started = co_await bus_->wait_for_scope(*asked);
  if (!started) co_return started;
  const auto path = unified_path(host::read_text(("/proc/" + std::to_string(pid_) + "/cgroup").c_str()));
  if (!path || !path->ends_with("/" + scope())) co_return fail("cgroup", "the sandbox's process is not in its scope: " + printable(path.value_or("none")));
  auto group = Directory::open(kMount + *path);
  if (!group) co_return std::unexpected(group.error());
  group_ = std::move(*group);
  co_return check_scope();
}

Result<void> SandboxCgroup::enter_delegated() {
  auto parent = Directory::open(plan_.parent);
  if (!parent) return std::unexpected(parent.error());
  parent_ = std::move(*parent);
  if (auto vacated = vacate(parent_); !vacated) return vacated;
  sweep_parent(parent_);
  for (const char* controller : {"+memory", "+pids", "+cpu", "+io"}) (void)parent_.write("cgroup.subtree_control", controller);
  auto group = parent_.make("sandy-" + id_);
  if (!group) return std::unexpected(group.error());
  group_ = std::move(*group);
  return limit_all(plan_.limits);
}

asio::awaitable<Result<void>> SandboxCgroup::enter() {
  Result<void> entered;
  if (plan_.way == Way::systemd) {
    entered = co_await enter_scope();
  } else {
    entered = enter_delegated();
  }
  if (!entered) co_return entered;
  auto own = group_.make("own");
  if (!own) co_return std::unexpected(own.error());
  own_ = std::move(*own);
  co_return own_.add(pid_);
}

// What systemd can't set it says in its log alone: no disk below a file, a controller that it doesn't have after all. Memory and processes are limited in `commands` too.
Result<void> SandboxCgroup::check_scope() const {
  if ((plan_.limits.io_read || plan_.limits.io_write) && group_.read("io.max").empty()) return std::unexpected(no_disk(io_path_));
  if (plan_.limits.cpus && !single_value(group_.read("cpu.max"))) return fail(scope(), "systemd has not set its limit of CPU", "look at `systemctl --user status`; or leave the limit out, or set limits.best_effort");
  return {};
}

Result<void> SandboxCgroup::make_commands() {
  auto commands = group_.make("commands");
  if (!commands) return std::unexpected(commands.error());
  commands_ = std::move(*commands);
  const auto given = group_.read("cgroup.controllers");
  std::string controllers;
  for (const char* controller : {"memory", "pids"}) {
    if (has_word(given, controller)) controllers += std::string(" +") + controller;
  }
  // (In one write: the kernel moves all processes below for each.)
  if (!controllers.empty()) {
    if (auto r = group_.write("cgroup.subtree_control", controllers); !r) return r;
    if (auto r = commands_.write("cgroup.subtree_control", controllers); !r) return r;
  }
  if (auto limited = limit_commands(plan_.limits); !limited) return limited;
  if (commands_.has("pids.events.local")) {
    auto events = commands_.open_file("pids.events");
    if (!events) return std::unexpected(events.error());
    pids_events_ = std::move(*events);
  }
  // While the agent is still to come: the first command's.
  auto first = commands_.make(std::to_string(next_));
  if (!first) return std::unexpected(first.error());
  groups_[next_] = std::move(*first);
  built_ = true;
  return {};
}

Result<void> SandboxCgroup::limit_commands(const policy::GroupLimits& limits) const {
  if (limits.memory) {
    if (auto r = commands_.write("memory.max", in_words(*limits.memory)); !r) return r;
  }
  if (limits.swap) {
    if (auto r = commands_.write("memory.swap.max", in_words(*limits.swap)); !r) return r;
  }
  // And one for the process that waits for the next command.
  if (limits.pids) return commands_.write("pids.max", in_words(raised(*limits.pids, 1)));
  return {};
}

Result<void> SandboxCgroup::limit_all(const policy::GroupLimits& given) const {
  const ScopeLimits limits = scope_limits(given);
  if (limits.memory) {
    if (auto r = group_.write("memory.max", in_words(*limits.memory)); !r) return r;
  }
  if (limits.swap) {
    if (auto r = group_.write("memory.swap.max", in_words(*limits.swap)); !r) return r;
  }
  if (limits.cpus) {
    const double quota = *limits.cpus * static_cast<double>(kPeriodUs);
    const std::uint64_t whole = std::isinf(quota) ? kNoLimit : std::max<std::uint64_t>(static_cast<std::uint64_t>(quota), 1'000);
    if (auto r = group_.write("cpu.max", in_words(whole) + " " + std::to_string(kPeriodUs)); !r) return r;
  }
  if (limits.pids) {
    if (auto r = group_.write("pids.max", in_words(*limits.pids)); !r) return r;
  }
  if (!limits.io_read && !limits.io_write) return {};
  const auto disk = disk_of(io_path_);
  if (!disk) return std::unexpected(no_disk(io_path_));
  std::string line = *disk;
  if (limits.io_read) line += " rbps=" + in_words(*limits.io_read);
  if (limits.io_write) line += " wbps=" + in_words(*limits.io_write);
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
  // The newest are the last.
  for (const int pid : process_ids(own_.read("cgroup.procs")) | std::views::reverse) {
    if (innermost_pid(host::read_text(("/proc/" + std::to_string(pid) + "/status").c_str())) != inside) continue;
    const std::uint32_t number = next_++;
    if (!groups_.contains(number)) {
      auto group = commands_.make(std::to_string(number));
      if (!group) return std::unexpected(group.error());
      groups_[number] = std::move(*group);
    }
    if (auto added = groups_.at(number).add(pid); !added) {
      end_command(number);
      return std::unexpected(added.error());
    }
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

std::uint64_t SandboxCgroup::throttled_us() const { return plan_.limits.cpus ? flat_value(group_.read("cpu.stat"), "throttled_usec").value_or(0) : 0; }

std::uint64_t SandboxCgroup::forks_refused(std::uint32_t command) const {
  if (!plan_.limits.pids) return 0;
  if (pids_events_) return refused_in(read_again(pids_events_));
  const auto found = groups_.find(command);
  return found == groups_.end() ? 0 : refused_in(found->second);
}

std::uint64_t SandboxCgroup::all_forks_refused() const {
  if (pids_events_) return refused_in(read_again(pids_events_));
  std::uint64_t out = gone_forks_refused_;
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
  remove_ended(command);
  sweep();
}

void SandboxCgroup::remove_ended(std::uint32_t command) {
  const auto found = ended_.find(command);
  const auto refused = plan_.limits.pids && !pids_events_ ? refused_in(found->second) : 0;
  if (!commands_.remove(std::to_string(command))) return;
  gone_forks_refused_ += refused;
  ended_.erase(found);
}

void SandboxCgroup::sweep() {
  // A few at a time, in turn: there may be hundreds with a job in the background.
  constexpr int kAtATime = 4;
  for (int turn = 0; turn < kAtATime && !ended_.empty(); ++turn) {
    auto next = ended_.upper_bound(swept_);
    if (next == ended_.end()) next = ended_.begin();
    swept_ = next->first;
    remove_ended(swept_);
  }
}

Usage SandboxCgroup::usage() const {
  Usage out = read_usage(group_);
  out.forks_refused = all_forks_refused();
  const auto processes = single_value(commands_.read("pids.current")).value_or(0);
  out.processes = processes - std::min(processes, waiting_processes());
  return out;
}

std::uint64_t SandboxCgroup::oom_kills() const { return flat_value(group_.read("memory.events"), "oom_kill").value_or(0); }

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

asio::awaitable<Result<void>> SandboxCgroup::write_limits(policy::GroupLimits limits) {
  if (auto limited = limit_commands(limits); !limited) co_return limited;
  if (!bus_) co_return limit_all(limits);
  auto set = scope_limits(limits);
  co_return co_await bus_->set_limits(scope(), std::move(set));
}

asio::awaitable<Result<void>> SandboxCgroup::set_limits(policy::GroupLimits limits) {
  const policy::GroupLimits before = plan_.limits;
  auto done = co_await write_limits(limits);
  if (done) {
    policy::GroupLimits::for_each(plan_.limits, limits, [](auto& old, const auto& given, const char*) {
      if (given) old = given;
    });
    if (bus_) done = check_scope();
  }
  if (done) co_return done;
  // All or none. What there was no limit of has none again.
  plan_.limits = before;
  policy::GroupLimits back = limits;
  policy::GroupLimits::for_each(back, before, []<typename Number>(std::optional<Number>& changed, const std::optional<Number>& old, const char*) {
    constexpr Number kNone = std::is_floating_point_v<Number> ? std::numeric_limits<Number>::infinity() : std::numeric_limits<Number>::max();
    if (changed) changed = old.value_or(kNone);
  });
  if (auto restored = co_await write_limits(back); !restored) done.error().why += "; and those before can't be had again: " + restored.error().why;
  co_return done;
}

}  // namespace sandy::cgroup
