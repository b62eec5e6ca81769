// Makes system calls with harmless arguments and prints "NAME ERRNO" for each, as "NAME 0" where it
// succeeded. A bad pointer or descriptor tells who answered: EFAULT or EBADF comes from the kernel,
// so the filter let the call through; any other errno that live.table lists comes from the filter.
// Depends on libc alone: cc live_probe.cpp
#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

// Not mapped in any process: below vm.mmap_min_addr.
constexpr long kBadPointer = 8, kBadFd = 1000000;

void show(const char* name, long result) {
  printf("%s %s\n", name, result >= 0 ? "0" : strerrorname_np(errno));
}

void probe(const char* name, long number, long a = 0, long b = 0, long c = 0, long d = 0,
           long e = 0, long f = 0) {
  errno = 0;
  const long result = syscall(number, a, b, c, d, e, f);
  const int saved = errno;
  const bool descriptor = strncmp(name, "socket", 6) == 0 || strncmp(name, "memfd", 5) == 0;
  if (result >= 0 && descriptor) close(static_cast<int>(result));
  errno = saved;
  show(name, result);
}

// Runs `body` in a child and prints how it ended: the foreign ABI kills.
template <typename Body>
void in_child(const char* name, Body body) {
  fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    body();
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  printf("%s %s\n", name, WIFSIGNALED(status) ? strsignal(WTERMSIG(status)) : "ended");
}

void namespaces() {
  in_child("clone-thread-flags", [] {});
  probe("clone-newuser", SYS_clone, CLONE_NEWUSER | SIGCHLD, kBadPointer);
  probe("clone-newnet", SYS_clone, CLONE_NEWNET | SIGCHLD, kBadPointer);
  probe("clone3", 435, kBadPointer, 88);
  probe("unshare-newuser", SYS_unshare, CLONE_NEWUSER);
  probe("unshare-newtime", SYS_unshare, 0x80);
  probe("unshare-files", SYS_unshare, CLONE_FILES);
  probe("setns", SYS_setns, kBadFd, 0);
}

void mounts() {
  probe("mount", SYS_mount, kBadPointer, kBadPointer, kBadPointer, 0, 0);
  probe("umount2", SYS_umount2, kBadPointer, 0);
  probe("pivot_root", SYS_pivot_root, kBadPointer, kBadPointer);
  probe("open_tree", 428, kBadFd, kBadPointer, 0);
  probe("move_mount", 429, kBadFd, kBadPointer, kBadFd, kBadPointer, 0);
  probe("fsopen", 430, kBadPointer, 0);
  probe("fsconfig", 431, kBadFd, 0, 0, 0, 0);
  probe("fsmount", 432, kBadFd, 0, 0);
  probe("fspick", 433, kBadFd, kBadPointer, 0);
  probe("mount_setattr", 442, kBadFd, kBadPointer, 0, kBadPointer, 32);
  probe("chroot", SYS_chroot, kBadPointer);
  probe("open_by_handle_at", SYS_open_by_handle_at, kBadFd, kBadPointer, 0);
}

void kernel_and_machine() {
  probe("bpf", SYS_bpf, 0, kBadPointer, 8);
  probe("perf_event_open", SYS_perf_event_open, kBadPointer, 0, -1, -1, 0);
  probe("userfaultfd", SYS_userfaultfd, -1);
  probe("io_uring_setup", 425, 1, kBadPointer);
  probe("io_uring_enter", 426, kBadFd, 0, 0, 0, 0, 0);
  probe("add_key", SYS_add_key, kBadPointer, kBadPointer, 0, 0, 0);
  probe("keyctl", SYS_keyctl, 9999);
  probe("kexec_load", SYS_kexec_load, 0, 9999, kBadPointer, 0xffff);
  probe("finit_module", SYS_finit_module, kBadFd, kBadPointer, 0);
  probe("delete_module", SYS_delete_module, kBadPointer, 0);
  probe("settimeofday", SYS_settimeofday, kBadPointer, 0);
  probe("clock_settime", SYS_clock_settime, 9999, kBadPointer);
  probe("adjtimex", SYS_adjtimex, kBadPointer);
  probe("quotactl", SYS_quotactl, 0xffffff00, kBadPointer, 0, kBadPointer);
  probe("syslog", SYS_syslog, 9999, 0, 0);
  probe("fanotify_init", SYS_fanotify_init, 0xffffffff, 0);
  probe("reboot", SYS_reboot, 0, 0, 0, 0);
}

void processes() {
  probe("ptrace", SYS_ptrace, PTRACE_PEEKDATA, 0, kBadPointer, kBadPointer);
  probe("process_vm_readv", SYS_process_vm_readv, getpid(), kBadPointer, 1, kBadPointer, 1, 0);
  probe("kcmp", SYS_kcmp, getpid(), getpid(), 9999, 0, 0);
  probe("pidfd_getfd", 438, kBadFd, 0, 0);
  probe("pidfd_open", 434, 0, 0xffffffff);
  probe("pidfd_send_signal", 424, kBadFd, 0, 0, 0);
  probe("personality-query", SYS_personality, 0xffffffff);
  probe("personality-exec", SYS_personality, 0x400000);
}

void sockets() {
  probe("socket-unix", SYS_socket, AF_UNIX, SOCK_STREAM, 0);
  probe("socket-inet", SYS_socket, AF_INET, SOCK_STREAM, 0);
  probe("socket-inet6-udp", SYS_socket, AF_INET6, SOCK_DGRAM, 0);
  probe("socket-raw", SYS_socket, AF_INET, SOCK_RAW, IPPROTO_UDP);
  probe("socket-sock-packet", SYS_socket, AF_INET, SOCK_PACKET, 0);
  probe("socket-sctp", SYS_socket, AF_INET, SOCK_STREAM, IPPROTO_SCTP);
  probe("socket-route", SYS_socket, AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);
  probe("socket-netfilter", SYS_socket, AF_NETLINK, SOCK_RAW, NETLINK_NETFILTER);
  probe("socket-packet", SYS_socket, AF_PACKET, SOCK_RAW, 0);
  probe("socket-alg", SYS_socket, AF_ALG, SOCK_SEQPACKET, 0);
  probe("socket-vsock", SYS_socket, AF_VSOCK, SOCK_STREAM, 0);
  probe("socket-vsock-high-bits", SYS_socket, 0x100000000L | AF_VSOCK, SOCK_STREAM, 0);
  probe("socketpair-tipc", SYS_socketpair, AF_TIPC, SOCK_SEQPACKET, 0, kBadPointer);
}

void requests() {
  probe("ioctl-tiocsti", SYS_ioctl, kBadFd, TIOCSTI, kBadPointer);
  probe("ioctl-tiocsti-high-bits", SYS_ioctl, kBadFd, 0x100000000L | TIOCSTI, kBadPointer);
  probe("ioctl-tiocsti-sign-bits", SYS_ioctl, kBadFd,
        static_cast<long>(0xffffffff00000000UL) | TIOCSTI, kBadPointer);
  probe("ioctl-tioclinux", SYS_ioctl, kBadFd, TIOCLINUX, kBadPointer);
  probe("ioctl-kdskbsent", SYS_ioctl, kBadFd, 0x4b49, kBadPointer);
  probe("ioctl-tcgets", SYS_ioctl, kBadFd, TCGETS, kBadPointer);
  probe("ioctl-unknown", SYS_ioctl, kBadFd, 0x12345678, kBadPointer);
}

void files() {
  probe("openat", SYS_openat, AT_FDCWD, kBadPointer, O_RDONLY, 0);
  probe("openat2", 437, AT_FDCWD, kBadPointer, kBadPointer, 24);
  probe("statx", SYS_statx, AT_FDCWD, kBadPointer, 0, 0, kBadPointer);
  probe("fchmodat2", 452, AT_FDCWD, kBadPointer, 0644, 0);
  probe("fchmod-setuid", SYS_fchmod, kBadFd, 04755);
  probe("fchmodat2-setuid", 452, AT_FDCWD, kBadPointer, 04755, 0);
  probe("openat-setgid", SYS_openat, AT_FDCWD, kBadPointer, O_CREAT | O_WRONLY, 02755);
  probe("mknodat-device", SYS_mknodat, AT_FDCWD, kBadPointer, S_IFCHR | 0600, 0);
  probe("mknodat-fifo", SYS_mknodat, AT_FDCWD, kBadPointer, S_IFIFO | 0600, 0);
  probe("memfd_create", SYS_memfd_create, kBadPointer, 0);
  probe("vmsplice", SYS_vmsplice, kBadFd, kBadPointer, 1, 0);
  probe("mq_open", SYS_mq_open, kBadPointer, 0, 0, 0);
  probe("no-such-call", 4000);
}

void foreign_abis() {
#if defined(__x86_64__)
  // int 0x80 enters by the i386 table, where 20 is getpid. A kernel without that table sends
  // SIGSEGV.
  in_child("i386-getpid", [] {
    long result = 20;
    asm volatile("int $0x80" : "+a"(result) : : "memory", "r8", "r9", "r10", "r11");
  });
  in_child("x32-getpid", [] { syscall(0x40000000 + 39); });
#endif
}

}  // namespace

int main() {
  namespaces();
  mounts();
  kernel_and_machine();
  processes();
  sockets();
  requests();
  files();
  foreign_abis();
  return 0;
}
