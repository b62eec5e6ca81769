// System calls that lead past a sandbox: rows 8, 22 to 26, 32 and 38.
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/io_uring.h>
#include <linux/openat2.h>
#include <linux/sched.h>
#include <linux/vm_sockets.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "attack/attempts.h"
#include "attack/report.h"

namespace sandy::attack {
namespace {

// Where the filter ends the caller instead of returning an error, only the child is ended.
void in_child(long (*call)()) {
  int channel[2];
  if (pipe(channel) != 0) refused(errno);
  const pid_t child = fork();
  if (child < 0) refused(errno);
  if (child == 0) {
    const long result = call();
    const int number = result < 0 ? errno : 0;
    _exit(write(channel[1], &number, sizeof number) == sizeof number ? 0 : 1);
  }
  close(channel[1]);
  int number = 0, status = 0;
  const bool told = read(channel[0], &number, sizeof number) == sizeof number;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {}
  if (told) number == 0 ? done("") : refused(number);
  // How the child died otherwise is nobody's refusal: no report.
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS) refused("SIGSYS");
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV) absent("the kernel has no such system calls");
  _exit(4);
}

template <auto Call>
void attempt(char** /*arguments*/) {
  in_child(Call);
}

#ifdef __x86_64__
long x32() { return syscall(0x40000000L | SYS_getpid); }

long int_0x80(long number, long first, long second) {
  long result;
  __asm__ volatile("int $0x80" : "=a"(result) : "a"(number), "b"(first), "c"(second) : "memory", "r8", "r9", "r10", "r11");
  if (result >= 0) return result;
  errno = static_cast<int>(-result);
  return -1;
}

// socketcall(2), SYS_SOCKET: sockets through one number, where a filter by number would not look.
long i386_socketcall() {
  void* const low = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
  if (low == MAP_FAILED) return -1;
  auto* const arguments = static_cast<unsigned*>(low);
  arguments[0] = AF_UNIX;
  arguments[1] = SOCK_STREAM;
  arguments[2] = 0;
  return int_0x80(102, 1, static_cast<long>(reinterpret_cast<uintptr_t>(low)));
}

long i386() { return int_0x80(20, 0, 0); }  // getpid
#endif

long reap(long child) {
  if (child > 0) waitpid(static_cast<pid_t>(child), nullptr, 0);
  return child;
}

int nothing(void* /*unused*/) { return 0; }

long unshare_user() { return unshare(CLONE_NEWUSER); }
long clone_user() {
  alignas(16) static char stack[65536];
  return reap(clone(nothing, stack + sizeof stack, CLONE_NEWUSER | SIGCHLD, nullptr));
}
long clone3_user() {
  clone_args arguments{};
  arguments.flags = CLONE_NEWUSER;
  arguments.exit_signal = SIGCHLD;
  const long child = syscall(SYS_clone3, &arguments, sizeof arguments);
  if (child == 0) _exit(0);
  return reap(child);
}
long join_namespace() {
  const int fd = open("/proc/self/ns/user", O_RDONLY | O_CLOEXEC);
  // Its own, which the kernel refuses with EINVAL where nothing else refuses it first.
  const long result = fd < 0 ? -1 : setns(fd, CLONE_NEWUSER);
  return result < 0 && errno == EINVAL ? 0 : result;
}

long mount_tmpfs() { return mount("none", "/tmp", "tmpfs", 0, nullptr); }
long bind_root() { return mount("/", "/tmp", nullptr, MS_BIND | MS_REC, nullptr); }
// A locked mount may not be made writable, which is EPERM; the flags that /proc has anyway may be set again.
long remount() { return mount(nullptr, "/", nullptr, MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV, nullptr); }
long mount_cgroups() { return mount("none", "/tmp", "cgroup2", 0, nullptr); }
long change_root() { return chroot("/tmp"); }
long tree() { return syscall(SYS_open_tree, AT_FDCWD, "/", 1 | AT_RECURSIVE /* OPEN_TREE_CLONE, with all below */); }
long new_file_system() { return syscall(SYS_fsopen, "tmpfs", 0); }
long attributes() {
  mount_attr changes{};
  changes.attr_set = MOUNT_ATTR_NOSUID;
  return syscall(SYS_mount_setattr, AT_FDCWD, "/", 0, &changes, sizeof changes);
}

long open_with_flags_in_memory() {
  open_how how{};
  how.flags = O_RDONLY;
  return syscall(SYS_openat2, AT_FDCWD, "/", &how, sizeof how);
}
// With a bad handle: EBADF comes after the right to ask, which is wanted first.
long by_handle() {
  const long result = syscall(SYS_open_by_handle_at, -1, nullptr, 0);
  return result < 0 && (errno == EBADF || errno == EFAULT) ? 0 : result;
}
long ring() {
  io_uring_params parameters{};
  return syscall(SYS_io_uring_setup, 2, &parameters);
}
long virtual_machine_socket() { return socket(AF_VSOCK, SOCK_STREAM, 0); }
// The kernel looks at 32 bits of the number, whatever stands above.
long socket_with_high_bits() { return syscall(SYS_socket, 0x100000000L | AF_VSOCK, SOCK_STREAM, 0); }
long crypto_socket() { return socket(AF_ALG, SOCK_SEQPACKET, 0); }
long netfilter_socket() { return socket(AF_NETLINK, SOCK_RAW, 12); }
long audit_socket() { return socket(AF_NETLINK, SOCK_RAW, 9); }
long packet_socket() { return socket(AF_PACKET, SOCK_RAW, 0); }
long raw_socket() { return socket(AF_INET, SOCK_RAW, 1); }

// Types into a terminal of our own.
long type_into_terminal() {
  const int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
  char name[64];
  if (master < 0 || grantpt(master) != 0 || unlockpt(master) != 0 || ptsname_r(master, name, sizeof name) != 0) return -1;
  if (setsid() < 0) return -1;
  const int terminal = open(name, O_RDWR | O_CLOEXEC);
  if (terminal < 0 || ioctl(terminal, TIOCSCTTY, 0) < 0) return -1;
  return ioctl(terminal, TIOCSTI, "x");
}

pid_t waiting_child() {
  const pid_t child = fork();
  if (child == 0) {
    pause();
    _exit(0);
  }
  return child;
}
long end_child(pid_t child, long result) {
  const int number = errno;
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  errno = number;
  return result;
}
long trace_child() {
  const pid_t child = waiting_child();
  return child < 0 ? -1 : end_child(child, ptrace(PTRACE_SEIZE, child, nullptr, nullptr));
}
long take_descriptor() {
  const pid_t child = waiting_child();
  if (child < 0) return -1;
  const int fd = static_cast<int>(syscall(SYS_pidfd_open, child, 0));
  return end_child(child, fd < 0 ? -1 : syscall(SYS_pidfd_getfd, fd, 0, 0));
}

// An impossible command: EINVAL comes after the right to ask.
long kernel_program() {
  bpf_attr attributes{};
  const long result = syscall(SYS_bpf, 9999, &attributes, sizeof attributes);
  return result < 0 && errno == EINVAL ? 0 : result;
}
long watch_performance() {
  const long result = syscall(SYS_perf_event_open, nullptr, 0, -1, -1, 0);
  return result < 0 && errno == EFAULT ? 0 : result;
}
long handle_faults() { return syscall(SYS_userfaultfd, O_CLOEXEC | 1 /* UFFD_USER_MODE_ONLY */); }
long keyring() { return syscall(SYS_keyctl, 0 /* KEYCTL_GET_KEYRING_ID */, -4 /* KEY_SPEC_USER_KEYRING */, 1); }

}  // namespace

const Attempt kCalls[] = {
#ifdef __x86_64__
    {"x32", 0, attempt<x32>},
    {"i386", 0, attempt<i386>},
    {"i386-socketcall", 0, attempt<i386_socketcall>},
#endif
    {"unshare-user", 0, attempt<unshare_user>},
    {"clone-user", 0, attempt<clone_user>},
    {"clone3-user", 0, attempt<clone3_user>},
    {"setns", 0, attempt<join_namespace>},
    {"mount-tmpfs", 0, attempt<mount_tmpfs>},
    {"bind-root", 0, attempt<bind_root>},
    {"remount", 0, attempt<remount>},
    {"mount-cgroups", 0, attempt<mount_cgroups>},
    {"chroot", 0, attempt<change_root>},
    {"open-tree", 0, attempt<tree>},
    {"fsopen", 0, attempt<new_file_system>},
    {"mount-setattr", 0, attempt<attributes>},
    {"openat2", 0, attempt<open_with_flags_in_memory>},
    {"open-by-handle", 0, attempt<by_handle>},
    {"io-uring", 0, attempt<ring>},
    {"vsock", 0, attempt<virtual_machine_socket>},
    {"vsock-high-bits", 0, attempt<socket_with_high_bits>},
    {"crypto-socket", 0, attempt<crypto_socket>},
    {"netfilter-socket", 0, attempt<netfilter_socket>},
    {"audit-socket", 0, attempt<audit_socket>},
    {"packet-socket", 0, attempt<packet_socket>},
    {"raw-socket", 0, attempt<raw_socket>},
    {"tiocsti", 0, attempt<type_into_terminal>},
    {"trace-child", 0, attempt<trace_child>},
    {"take-descriptor", 0, attempt<take_descriptor>},
    {"bpf", 0, attempt<kernel_program>},
    {"perf", 0, attempt<watch_performance>},
    {"userfaultfd", 0, attempt<handle_faults>},
    {"keyring", 0, attempt<keyring>},
    {nullptr, 0, nullptr},
};

}  // namespace sandy::attack
