// The control group of one sandbox, and those of its commands.
//
//   SANDBOX/            the limits, with a reserve: by systemd (a scope), or by us below a delegated directory
//     own/              bubblewrap, the agent: what commands use up, as by files in memory that outlive them, leaves them the reserve
//     commands/         memory.max, memory.swap.max, pids.max: the policy's
//       1/, 2/, ...     one for each command, so that its peak, its time and its OOM kills are its own, and it can be killed whole
//
// A process can't be in a group that others are below (cgroup-v2.rst, "No Internal Process Constraint"), which is why bubblewrap has one of its own.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/error.h"
#include "cgroup/cgroup_directory.h"
#include "cgroup/systemd_bus.h"
#include "cgroup/usage.h"
#include "plan/plan.h"

namespace sandy::cgroup {

class SandboxCgroup {
 public:
  // Begins to make one around `pid`: a scope of systemd's, which is asked for, or a directory below a delegated one. `io_path`: a file on the disk that the I/O
  // limits are for.
  static std::unique_ptr<SandboxCgroup> begin(asio::any_io_executor executor, plan::CgroupPlan plan, std::string id, pid_t pid, std::string io_path);
  // While its caller has long work of its own: what the bus has to say is heard.
  void advance();
  // `pid`, which must not have started anything, is in it when this returns, below its limits.
  asio::awaitable<Result<void>> enter();
  // After enter(): the commands' group. `pid` may have gone on meanwhile.
  Result<void> make_commands();
  // Kills what is left in it, and removes what is ours to remove.
  ~SandboxCgroup();
  SandboxCgroup(const SandboxCgroup&) = delete;
  SandboxCgroup& operator=(const SandboxCgroup&) = delete;

  // A group for the next command, with the agent's process `inside` in it, whose number in the sandbox's PID namespace that is, and which is to become the
  // command. The group's number. One that waited before does not any more.
  Result<std::uint32_t> place(int inside);
  // The command has begun: false, this is not the group that waits for one.
  bool begin_command(std::uint32_t group);

  // memory_peak, cpu_us, oom_kills.
  Usage command_usage(std::uint32_t command) const;
  // Of all commands together, so far: microseconds that the limit of CPU has held them back for, if there is one.
  std::uint64_t throttled_us() const;
  // Forks at the limit of processes, if there is one: of this command, or since Linux 6.11, which counts them where the limit is, of all so far.
  std::uint64_t forks_refused(std::uint32_t command) const;
  void kill_command(std::uint32_t command) const;
  // It has ended: its group goes away, at the latest when all of its processes have.
  void end_command(std::uint32_t command);

  Usage usage() const;
  // Of all commands so far: processes that were ended for want of memory.
  std::uint64_t oom_kills() const;
  // The name of a process that is being ended for want of memory, if one is just now.
  std::string dying_process() const;
  // A file whose change tells of OOM kills (inotify(7)).
  std::string memory_events_path() const { return group_.path() + "/memory.events"; }

  // Other limits, from now on; those that are not set stay. Where it fails, all do.
  asio::awaitable<Result<void>> set_limits(policy::GroupLimits limits);
  const plan::CgroupPlan& plan() const { return plan_; }
  const std::string& path() const { return group_.path(); }

 private:
  SandboxCgroup(plan::CgroupPlan plan, std::string id, pid_t pid, std::string io_path) : plan_(std::move(plan)), id_(std::move(id)), io_path_(std::move(io_path)), pid_(pid) {}
  asio::awaitable<Result<void>> enter_scope();
  Result<void> enter_delegated();
  std::uint64_t waiting_processes() const { return waiting_ == 0 ? 0 : 1; }
  Result<void> check_scope() const;
  // Writes those that are set.
  Result<void> limit_all(const policy::GroupLimits& limits) const;
  Result<void> limit_commands(const policy::GroupLimits& limits) const;
  asio::awaitable<Result<void>> write_limits(policy::GroupLimits limits);
  std::string scope() const { return "sandy-" + id_ + ".scope"; }
  ScopeLimits scope_limits(const policy::GroupLimits& limits) const;
  std::uint64_t all_forks_refused() const;
  void remove_ended(std::uint32_t command);
  void sweep();

  plan::CgroupPlan plan_;
  std::string id_, io_path_;
  pid_t pid_ = -1;
  std::shared_ptr<SystemdBus> bus_;
  Result<std::shared_ptr<SystemdBus::Scope>> asked_ = nullptr;  // until enter()
  Directory parent_;  // delegated
  Directory group_, own_, commands_;
  UniqueFd pids_events_;                       // of `commands`, where forks are counted there
  std::map<std::uint32_t, Directory> groups_;  // of commands
  std::map<std::uint32_t, Directory> ended_;   // with processes left
  bool built_ = false;  // until then its process waits, and has started nothing
  std::uint32_t next_ = 1, waiting_ = 0, swept_ = 0;
  std::uint64_t gone_forks_refused_ = 0;  // in groups that are no more
};

}  // namespace sandy::cgroup
