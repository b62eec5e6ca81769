// Starts one command under a supervisor of its own.
//
// Theory of operation. A command's descendants must be found again when it is to be killed, also those that called
// setsid(2), forked twice, or were orphaned. Without cgroups the kernel keeps that lineage only for a *subreaper*
// (prctl(2), PR_SET_CHILD_SUBREAPER): orphans go to the nearest one, not to pid 1. So each command gets a small process
// that is one: the supervisor. It shares the agent's memory (clone(2) with CLONE_VM), so it costs a stack and no
// page tables; it starts the command by a vfork-like clone, waits for it, and then for every descendant that is left.
// When it has no child any more, it ends. All of a command's processes are thus always below its supervisor, and
// process_tree.h can kill them whole.
//
// The command may kill its supervisor (same user id). Its descendants then go to pid 1, the agent, whose only other
// children are supervisors: it kills such strays at once (Supervisors::reap).
//
// Where each command has a control group of its own, its process has to be in that before it becomes the command, and only `sandy` can put it
// there, which may take the kernel milliseconds. So one is made beforehand (prepare) that waits for begin(), and shares the agent's descriptors
// until then. Supervisors are not in these groups: they share the agent's memory, and where a group has no more, the kernel ends all that share the
// memory of whom it chooses. It never chooses a child of vfork(2) before its execve.
#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/unique_fd.h"

namespace sandy::agent {

// Everything a command's process needs, prepared by the agent: after clone nothing may be allocated.
struct CommandImage {
  std::vector<std::string> candidates;  // paths for execve, tried in this order (a PATH search, done)
  std::vector<std::string> argv;
  std::vector<std::string> env;         // NAME=value
  std::string cwd;
  UniqueFd in, out, err;                // become 0, 1, 2
  UniqueFd extra;                       // if set: becomes descriptor 9 (the text of a long command)
  bool controlling_tty = false;         // `in` is a PTY's slave and becomes the controlling terminal
  rlim_t open_files = 0, file_size = 0, processes = 0; // soft and hard limits; 0 = inherited
  std::string oom_score_adj;            // proc_pid_oom_score_adj(5); "": inherited
  bool tells_start = false;             // `wake_fd` also becomes readable when the program is run
};

class Supervisor {
 public:
  enum class State { running, ended, gone };  // gone: the supervisor itself has ended

  // Starts it. `wake_fd`, an eventfd, becomes readable when the state changes. An error is an errno value.
  static std::unique_ptr<Supervisor> start(CommandImage image, int wake_fd, int& error_number);
  // One that waits for begin(), or for its end.
  static std::unique_ptr<Supervisor> prepare(int wake_fd, int& error_number);
  void begin(CommandImage image);
  void dismiss();
  ~Supervisor();
  Supervisor(const Supervisor&) = delete;
  Supervisor& operator=(const Supervisor&) = delete;

  pid_t pid() const { return pid_; }                    // of the supervisor
  // Of one that was prepared, also while it waits; `wake_fd` becomes readable when there is one.
  pid_t command_pid() const { return command_pid_.load(std::memory_order_acquire); }
  bool ended() const { return ended_.load(std::memory_order_acquire); }
  bool executed() const { return executed_.load(std::memory_order_acquire); }  // the program is run; set where the image tells_start
  int exec_errno() const { return exec_errno_; }         // 0, or why the command's program could not be run
  bool chdir_failed() const { return chdir_failed_; }
  int status() const { return status_; }                 // wait(2) status; meaningful when ended()
  const rusage& usage() const { return usage_; }         // of the command and the children it waited for
  const char* killed() const { return killed_; }         // with a control group: name of the process that SIGKILL ended, the largest of those seen; or ""

  // Called by the agent, which reaped the command itself because its supervisor was killed.
  void note_status(int status);

 private:
  enum class Order : std::uint32_t { wait, begin, leave };

  Supervisor() = default;
  void take(CommandImage image);
  bool spawn(int flags, int wake_fd, int& error_number);
  void give(Order order);
  static int run(void* self);        // the supervisor's process
  bool wait_for_order();
  void prefer_for_oom(long pid);
  long next_child(int& status, rusage& usage);
  void supervise();
  [[noreturn]] void become_command();

  CommandImage image_;
  std::vector<char*> argv_, env_, shell_argv_;
  std::vector<const char*> paths_;
  void* stack_ = nullptr;
  bool prepared_ = false;
  std::atomic<Order> order_ = Order::begin;
  int wake_fd_ = -1;
  pid_t pid_ = -1;
  std::atomic<pid_t> command_pid_ = -1;
  std::atomic<bool> ended_ = false, executed_ = false;
  int exec_errno_ = 0;
  bool chdir_failed_ = false;
  int status_ = 0;
  rusage usage_{};
  char killed_[16] = {};
  long killed_rss_ = -1;
};

}  // namespace sandy::agent
