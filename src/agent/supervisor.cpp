#include "agent/supervisor.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <cerrno>
#include <cstdint>

#include "agent/raw_syscall.h"

// Code that runs on the supervisor's stack shares the agent's memory, and with it AddressSanitizer's shadow of a stack that
// is not its own, so it is not instrumented.
#define SANDY_SHARED_MEMORY [[gnu::no_sanitize("address", "undefined")]] [[gnu::noinline]]

namespace sandy::agent {
namespace {

constexpr std::size_t kStackBytes = 65'536;
constexpr std::size_t kGuardBytes = 4'096;

// The kernel's struct sigaction (<asm/signal.h>), which is not libc's.
struct KernelSigaction {
  void (*handler)(int);
  unsigned long flags;
  void (*restorer)();
  std::uint64_t mask;
};

}  // namespace

std::unique_ptr<Supervisor> Supervisor::start(CommandImage image, int wake_fd, int& error_number) {
  std::unique_ptr<Supervisor> self(new Supervisor);
  self->image_ = std::move(image);
  self->wake_fd_ = wake_fd;
  for (auto& argument : self->image_.argv) self->argv_.push_back(argument.data());
  self->argv_.push_back(nullptr);
  for (auto& variable : self->image_.env) self->env_.push_back(variable.data());
  self->env_.push_back(nullptr);
  for (auto& path : self->image_.candidates) self->paths_.push_back(path.c_str());
  // For a file without a known format (ENOEXEC), execvp(3) runs /bin/sh on it: [sh, PATH, arguments...].
  static char sh[] = "/bin/sh";
  self->shell_argv_ = {sh, nullptr};
  for (std::size_t i = 1; i < self->argv_.size(); ++i) self->shell_argv_.push_back(self->argv_[i]);

  void* stack = ::mmap(nullptr, kStackBytes + kGuardBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
  if (stack == MAP_FAILED) {
    error_number = errno;
    return nullptr;
  }
  self->stack_ = stack;
  ::mprotect(stack, kGuardBytes, PROT_NONE);
  char* top = static_cast<char*>(stack) + kGuardBytes + kStackBytes;
  // No CLONE_FILES: the supervisor has its own descriptor table, and closes what it need not have.
  self->pid_ = ::clone(&Supervisor::run, top, CLONE_VM | SIGCHLD, self.get());
  if (self->pid_ < 0) {
    error_number = errno;
    return nullptr;
  }
  return self;
}

Supervisor::~Supervisor() {
  if (stack_ != nullptr) ::munmap(stack_, kStackBytes + kGuardBytes);
}

void Supervisor::note_status(int status) {
  status_ = status;
  ended_.store(true, std::memory_order_release);
}

SANDY_SHARED_MEMORY int Supervisor::run(void* self) {
  static_cast<Supervisor*>(self)->supervise();
  raw_syscall(SYS_exit, 0);
  __builtin_unreachable();
}

SANDY_SHARED_MEMORY void Supervisor::supervise() {
  raw_syscall(SYS_prctl, PR_SET_CHILD_SUBREAPER, 1);
  // Like vfork(2): the child runs on this stack while we are suspended, and never returns from become_command().
  const long child = raw_syscall(SYS_clone, CLONE_VM | CLONE_VFORK | SIGCHLD, 0, 0, 0, 0);
  if (child == 0) become_command();
  const std::uint64_t one = 1;
  if (child < 0) {
    exec_errno_ = static_cast<int>(-child);
    ended_.store(true, std::memory_order_release);
    raw_syscall(SYS_write, wake_fd_, raw_arg(&one), sizeof one);
    return;
  }
  command_pid_.store(static_cast<pid_t>(child), std::memory_order_release);
  raw_syscall(SYS_close_range, 0, wake_fd_ - 1, 0);
  raw_syscall(SYS_close_range, wake_fd_ + 1, ~0U, 0);
  while (true) {
    int status = 0;
    rusage usage{};
    const long pid = raw_syscall(SYS_wait4, -1, raw_arg(&status), __WALL, raw_arg(&usage));
    if (pid == -EINTR) continue;
    if (pid < 0) return;  // ECHILD: no descendant is left
    if (pid != child) continue;
    status_ = status;
    usage_ = usage;
    ended_.store(true, std::memory_order_release);
    raw_syscall(SYS_write, wake_fd_, raw_arg(&one), sizeof one);
  }
}

SANDY_SHARED_MEMORY void Supervisor::become_command() {
  // What the agent ignores or blocks for itself goes back to the default.
  const KernelSigaction plain{};
  for (const int number : {SIGPIPE, SIGXFSZ}) raw_syscall(SYS_rt_sigaction, number, raw_arg(&plain), 0, sizeof plain.mask);
  const std::uint64_t none = 0;
  raw_syscall(SYS_rt_sigprocmask, SIG_SETMASK, raw_arg(&none), 0, sizeof none);
  raw_syscall(SYS_setsid);
  if (image_.controlling_tty) raw_syscall(SYS_ioctl, image_.in.get(), TIOCSCTTY, 0);

  // The agent holds 0, 1 and 2 open on /dev/null, so none of these descriptors is below 3, and dup3 clears CLOEXEC.
  raw_syscall(SYS_dup3, image_.in.get(), 0, 0);
  raw_syscall(SYS_dup3, image_.out.get(), 1, 0);
  raw_syscall(SYS_dup3, image_.err.get(), 2, 0);
  if (image_.extra) {
    if (image_.extra.get() == 9) {
      raw_syscall(SYS_fcntl, 9, F_SETFD, 0);
    } else {
      raw_syscall(SYS_dup3, image_.extra.get(), 9, 0);
    }
    raw_syscall(SYS_close_range, 3, 8, 0);
    raw_syscall(SYS_close_range, 10, ~0U, 0);
  } else {
    raw_syscall(SYS_close_range, 3, ~0U, 0);
  }

  struct Limit {
    std::uint64_t soft, hard;
  };
  if (image_.open_files != 0) {
    const Limit limit{image_.open_files, image_.open_files};
    raw_syscall(SYS_prlimit64, 0, RLIMIT_NOFILE, raw_arg(&limit), 0);
  }
  if (image_.file_size != 0) {
    const Limit limit{image_.file_size, image_.file_size};
    raw_syscall(SYS_prlimit64, 0, RLIMIT_FSIZE, raw_arg(&limit), 0);
  }
  if (const long error = raw_syscall(SYS_chdir, raw_arg(image_.cwd.c_str())); error < 0) {
    exec_errno_ = static_cast<int>(-error);
    chdir_failed_ = true;
    raw_syscall(SYS_exit_group, 126);
  }
  // As execvp(3): go on after ENOENT, ENOTDIR and EACCES, and report EACCES if it was among them.
  int error_number = ENOENT;
  for (const char* path : paths_) {
    const long error = raw_syscall(SYS_execve, raw_arg(path), raw_arg(argv_.data()), raw_arg(env_.data()));
    if (error == -ENOEXEC) {
      shell_argv_[1] = const_cast<char*>(path);
      raw_syscall(SYS_execve, raw_arg(shell_argv_[0]), raw_arg(shell_argv_.data()), raw_arg(env_.data()));
      error_number = ENOEXEC;
      break;
    }
    if (error == -ENOENT || error == -ENOTDIR) continue;
    error_number = static_cast<int>(-error);
    if (error != -EACCES) break;
  }
  exec_errno_ = error_number;
  raw_syscall(SYS_exit_group, error_number == ENOENT ? 127 : 126);
  __builtin_unreachable();
}

}  // namespace sandy::agent
