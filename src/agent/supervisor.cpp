#include "agent/supervisor.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <linux/futex.h>
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
constexpr unsigned kNoDescriptor = 1U << 30;  // above all that there can be

// The kernel's struct sigaction (<asm/signal.h>), which is not libc's.
struct KernelSigaction {
  void (*handler)(int);
  unsigned long flags;
  void (*restorer)();
  std::uint64_t mask;
};

}  // namespace

void Supervisor::take(CommandImage image) {
  image_ = std::move(image);
  for (auto& argument : image_.argv) argv_.push_back(argument.data());
  argv_.push_back(nullptr);
  for (auto& variable : image_.env) env_.push_back(variable.data());
  env_.push_back(nullptr);
  for (auto& path : image_.candidates) paths_.push_back(path.c_str());
  // For a file without a known format (ENOEXEC), execvp(3) runs /bin/sh on it: [sh, PATH, arguments...].
  static char sh[] = "/bin/sh";
  shell_argv_ = {sh, nullptr};
  for (std::size_t i = 1; i < argv_.size(); ++i) shell_argv_.push_back(argv_[i]);
}

bool Supervisor::spawn(int flags, int wake_fd, int& error_number) {
  wake_fd_ = wake_fd;
  void* stack = ::mmap(nullptr, kStackBytes + kGuardBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
  if (stack == MAP_FAILED) {
    error_number = errno;
    return false;
  }
  stack_ = stack;
  ::mprotect(stack, kGuardBytes, PROT_NONE);
  char* top = static_cast<char*>(stack) + kGuardBytes + kStackBytes;
  pid_ = ::clone(&Supervisor::run, top, CLONE_VM | SIGCHLD | flags, this);
  if (pid_ < 0) error_number = errno;
  return pid_ >= 0;
}

std::unique_ptr<Supervisor> Supervisor::start(CommandImage image, int wake_fd, int& error_number) {
  std::unique_ptr<Supervisor> self(new Supervisor);
  self->take(std::move(image));
  // No CLONE_FILES: the supervisor has its own descriptor table, and closes what it need not have.
  if (!self->spawn(0, wake_fd, error_number)) return nullptr;
  return self;
}

std::unique_ptr<Supervisor> Supervisor::prepare(int wake_fd, int& error_number) {
  std::unique_ptr<Supervisor> self(new Supervisor);
  self->prepared_ = true;
  self->order_ = Order::wait;
  if (!self->spawn(CLONE_FILES, wake_fd, error_number)) return nullptr;
  return self;
}

void Supervisor::give(Order order) {
  order_.store(order, std::memory_order_release);
  raw_syscall(SYS_futex, raw_arg(&order_), FUTEX_WAKE, 1);
}

void Supervisor::begin(CommandImage image) {
  take(std::move(image));
  give(Order::begin);
}

void Supervisor::dismiss() { give(Order::leave); }

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

// In the child that is to become the command.
SANDY_SHARED_MEMORY bool Supervisor::wait_for_order() {
  // Known from here on: if our supervisor is killed, its stack, on which we are, stays until we have ended (Agent::lose).
  command_pid_.store(static_cast<pid_t>(raw_syscall(SYS_getpid)), std::memory_order_release);
  if (!prepared_) return true;
  const std::uint64_t one = 1;
  raw_syscall(SYS_write, wake_fd_, raw_arg(&one), sizeof one);
  auto* const word = reinterpret_cast<volatile std::uint32_t*>(&order_);
  while (*word == static_cast<std::uint32_t>(Order::wait)) {
    raw_syscall(SYS_futex, raw_arg(&order_), FUTEX_WAIT, static_cast<std::uint32_t>(Order::wait), 0);
  }
  // A descriptor table of its own from here on: a copy of all.
  if (*word != static_cast<std::uint32_t>(Order::begin)) return false;
  exec_errno_ = static_cast<int>(-raw_syscall(SYS_close_range, kNoDescriptor, ~0U, CLOSE_RANGE_UNSHARE));
  return exec_errno_ == 0;
}

// "/proc/PID/NAME".
struct ProcPath {
  char text[48];
};

SANDY_SHARED_MEMORY void proc_path(ProcPath& path, long pid, const char* name) {
  const char* const start = "/proc/";
  int at = 0;
  while (start[at] != '\0') {
    path.text[at] = start[at];
    ++at;
  }
  char digits[12];
  int count = 0;
  for (; pid > 0; pid /= 10) digits[count++] = static_cast<char>('0' + pid % 10);
  while (count > 0) path.text[at++] = digits[--count];
  path.text[at++] = '/';
  while (*name != '\0') path.text[at++] = *name++;
  path.text[at] = '\0';
}

// As wait4(2) for any child. Of one that SIGKILL has ended it first looks up the name, which is there until it is waited for.
SANDY_SHARED_MEMORY long Supervisor::next_child(int& status, rusage& usage) {
  if (image_.oom_score_adj.empty()) return raw_syscall(SYS_wait4, -1, raw_arg(&status), __WALL, raw_arg(&usage));
  siginfo_t info{};
  const long waited = raw_syscall(SYS_waitid, P_ALL, 0, raw_arg(&info), WEXITED | WNOWAIT | __WALL, 0);
  if (waited < 0) return waited;
  const long pid = info.si_pid;
  const bool killed = info.si_code == CLD_KILLED && info.si_status == SIGKILL;
  char name[sizeof killed_] = {};
  if (killed) {
    ProcPath path;
    proc_path(path, pid, "comm");
    const long fd = raw_syscall(SYS_openat, AT_FDCWD, raw_arg(path.text), O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
      const long size = raw_syscall(SYS_read, fd, raw_arg(name), sizeof name - 1);
      name[size > 0 ? size - 1 : 0] = '\0';  // in the place of the newline
      raw_syscall(SYS_close, fd);
    }
  }
  const long reaped = raw_syscall(SYS_wait4, pid, raw_arg(&status), __WALL, raw_arg(&usage));
  if (killed && usage.ru_maxrss > killed_rss_) {
    killed_rss_ = usage.ru_maxrss;
    for (std::size_t i = 0; i < sizeof killed_; ++i) killed_[i] = name[i];
  }
  return reaped;
}

// Where memory runs out, the command goes before us: the kernel ends all that share the memory of what it chooses, and we share the agent's.
SANDY_SHARED_MEMORY void Supervisor::prefer_for_oom(long pid) {
  ProcPath path;
  proc_path(path, pid, "oom_score_adj");
  const long fd = raw_syscall(SYS_openat, AT_FDCWD, raw_arg(path.text), O_WRONLY | O_CLOEXEC);
  if (fd < 0) return;  // it has ended, or can't be looked into
  raw_syscall(SYS_write, fd, raw_arg(image_.oom_score_adj.data()), static_cast<long>(image_.oom_score_adj.size()));
  raw_syscall(SYS_close, fd);
}

SANDY_SHARED_MEMORY void Supervisor::supervise() {
  raw_syscall(SYS_prctl, PR_SET_CHILD_SUBREAPER, 1);
  // Like vfork(2): the child runs on this stack while we are suspended, and never returns from become_command().
  const long child = raw_syscall(SYS_clone, CLONE_VM | CLONE_VFORK | SIGCHLD | (prepared_ ? CLONE_FILES : 0), 0, 0, 0, 0);
  if (child == 0) {
    if (!wait_for_order()) raw_syscall(SYS_exit_group, 126);
    become_command();
  }
  // What can't be had for ourselves stays the agent's, whose descriptors are not ours to close.
  const bool own_descriptors = !prepared_ || raw_syscall(SYS_close_range, kNoDescriptor, ~0U, CLOSE_RANGE_UNSHARE) == 0;
  const std::uint64_t one = 1;
  if (child < 0) {
    exec_errno_ = static_cast<int>(-child);
    ended_.store(true, std::memory_order_release);
    raw_syscall(SYS_write, wake_fd_, raw_arg(&one), sizeof one);
    return;
  }
  if (image_.tells_start && exec_errno_ == 0) {
    executed_.store(true, std::memory_order_release);
    raw_syscall(SYS_write, wake_fd_, raw_arg(&one), sizeof one);
  }
  if (!image_.oom_score_adj.empty()) prefer_for_oom(child);
  if (own_descriptors) {
    raw_syscall(SYS_close_range, 0, wake_fd_ - 1, 0);
    raw_syscall(SYS_close_range, wake_fd_ + 1, ~0U, 0);
  }
  while (true) {
    int status = 0;
    rusage usage{};
    const long pid = next_child(status, usage);
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
  if (image_.processes != 0) {
    const Limit limit{image_.processes, image_.processes};
    raw_syscall(SYS_prlimit64, 0, RLIMIT_NPROC, raw_arg(&limit), 0);
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
