// attempt NAME...: tries each named thing, and prints "NAME: OK" or "NAME: ERRNO". Run outside a sandbox it is the positive control.
// What it tries is harmless where it is permitted: empty arguments, own children, own namespaces.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/io_uring.h>
#include <linux/openat2.h>
#include <linux/perf_event.h>
#include <linux/sched.h>
#include <linux/vm_sockets.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

static long in_child(long (*call)(void)) {
  int channel[2];
  if (pipe(channel) != 0) return -1;
  const pid_t child = fork();
  if (child == 0) {
    const long result = call();
    const int number = result < 0 ? errno : 0;
    (void)!write(channel[1], &number, sizeof number);
    _exit(0);
  }
  close(channel[1]);
  int number = EIO, status = 0;  // EIO: it died before it could say
  if (read(channel[0], &number, sizeof number) != sizeof number) number = EIO;
  close(channel[0]);
  waitpid(child, &status, 0);
  if (WIFSIGNALED(status)) {
    errno = WTERMSIG(status) == SIGSYS ? ENOTSUP : EIO;
    return -1;
  }
  errno = number;
  return number == 0 ? 0 : -1;
}

#ifdef __x86_64__
static long x32(void) { return syscall(0x40000000L | SYS_getpid); }
static long i386(void) {
  long result;
  __asm__ volatile("int $0x80" : "=a"(result) : "a"(20L) : "memory", "r8", "r9", "r10", "r11");
  return result;
}
// socketcall(2), SYS_SOCKET: sockets through one number, where a filter by number would not look.
static long i386_socketcall(void) {
  static unsigned arguments[3] __attribute__((section(".data"))) = {AF_UNIX, SOCK_STREAM, 0};
  long result;
  __asm__ volatile("int $0x80" : "=a"(result) : "a"(102L), "b"(1L), "c"((long)(uintptr_t)arguments) : "memory", "r8", "r9", "r10", "r11");
  return result;
}
#endif

static long new_user(void) { return unshare(CLONE_NEWUSER); }
static long new_user_and_mounts(void) { return unshare(CLONE_NEWUSER | CLONE_NEWNS); }
static int nothing(void* unused) {
  (void)unused;
  return 0;
}
static long clone_new_user(void) {
  static char stack[65536];
  const int pid = clone(nothing, stack + sizeof stack, CLONE_NEWUSER | SIGCHLD, NULL);
  if (pid > 0) waitpid(pid, NULL, 0);
  return pid;
}
static long clone3_new_user(void) {
  struct clone_args arguments = {.flags = CLONE_NEWUSER, .exit_signal = SIGCHLD};
  const long pid = syscall(SYS_clone3, &arguments, sizeof arguments);
  if (pid == 0) _exit(0);
  if (pid > 0) waitpid((pid_t)pid, NULL, 0);
  return pid;
}
static long clone3_plain(void) {
  struct clone_args arguments = {.exit_signal = SIGCHLD};
  const long pid = syscall(SYS_clone3, &arguments, sizeof arguments);
  if (pid == 0) _exit(0);
  if (pid > 0) waitpid((pid_t)pid, NULL, 0);
  return pid;
}
static long set_namespace(void) {
  const int fd = open("/proc/self/ns/net", O_RDONLY);
  return fd < 0 ? -1 : setns(fd, CLONE_NEWNET);
}
static long mount_tmpfs(void) { return mount("none", "/tmp", "tmpfs", 0, NULL); }
static long mount_proc(void) { return mount("proc", "/tmp", "proc", 0, NULL); }
static long remount_writable(void) { return mount(NULL, "/usr", NULL, MS_REMOUNT | MS_BIND, NULL); }
static long bind_root(void) { return mount("/", "/tmp", NULL, MS_BIND | MS_REC, NULL); }
static long unmount(void) { return umount2("/proc", MNT_DETACH | 4 /* MNT_EXPIRE, which can not be joined with it */); }
static long pivot(void) { return syscall(SYS_pivot_root, "/tmp", "/tmp"); }
static long change_root(void) { return chroot("/tmp"); }
static long open_tree_(void) { return syscall(SYS_open_tree, AT_FDCWD, "/", 1 /* OPEN_TREE_CLONE */); }
static long move_mount_(void) { return syscall(SYS_move_mount, -1, "", -1, "", 0x44); }
static long fsopen_(void) { return syscall(SYS_fsopen, "tmpfs", 0); }
static long fsmount_(void) { return syscall(SYS_fsmount, -1, 0, 0); }
static long fspick_(void) { return syscall(SYS_fspick, AT_FDCWD, "/", 0); }
static long mount_setattr_(void) {
  struct mount_attr attributes = {.attr_clr = MOUNT_ATTR_RDONLY};
  return syscall(SYS_mount_setattr, AT_FDCWD, "/usr", 0, &attributes, sizeof attributes);
}
static long openat2_(void) {
  struct open_how how = {.flags = O_RDONLY};
  return syscall(SYS_openat2, AT_FDCWD, "/etc/passwd", &how, sizeof how);
}
static long by_handle(void) { return syscall(SYS_open_by_handle_at, -1, NULL, 0); }
static long io_uring(void) {
  struct io_uring_params parameters;
  memset(&parameters, 0, sizeof parameters);
  return syscall(SYS_io_uring_setup, 2, &parameters);
}
static long io_uring_enter_(void) { return syscall(SYS_io_uring_enter, -1, 0, 0, 0, NULL, 0); }
static long io_uring_register_(void) { return syscall(SYS_io_uring_register, -1, 0, NULL, 0); }
static long vsock(void) { return socket(AF_VSOCK, SOCK_STREAM, 0); }
static long vsock_high_bits(void) { return syscall(SYS_socket, 0x100000000L | AF_VSOCK, SOCK_STREAM, 0); }
static long vsock_pair(void) {
  int pair[2];
  return socketpair(AF_VSOCK, SOCK_STREAM, 0, pair);
}
static long packet(void) { return socket(AF_PACKET, SOCK_RAW, 0); }
static long packet_old(void) { return socket(AF_INET, SOCK_PACKET, 0); }
static long raw_socket(void) { return socket(AF_INET, SOCK_RAW, 1); }
static long alg(void) { return socket(AF_ALG, SOCK_SEQPACKET, 0); }
static long netlink_audit(void) { return socket(AF_NETLINK, SOCK_RAW, 9); }
static long netlink_netfilter(void) { return socket(AF_NETLINK, SOCK_RAW, 12); }
static long netlink_route(void) { return socket(AF_NETLINK, SOCK_RAW, 0); }
static long unix_pair(void) {
  int pair[2];
  return socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
}
static long sti(void) { return ioctl(0, TIOCSTI, "x"); }
static long sti_high_bits(void) { return syscall(SYS_ioctl, 0, 0xdeadbeef00000000UL | TIOCSTI, "x"); }
static long linux_paste(void) { return ioctl(0, TIOCLINUX, "\x03"); }
static long window_size(void) {
  struct winsize size;
  return ioctl(0, TIOCGWINSZ, &size);
}
static long trace_child(void) {
  const pid_t child = fork();
  if (child == 0) {
    pause();
    _exit(0);
  }
  const long result = ptrace(PTRACE_SEIZE, child, NULL, NULL);
  const int number = errno;
  kill(child, SIGKILL);
  waitpid(child, NULL, 0);
  errno = number;
  return result;
}
static long trace_first(void) { return ptrace(PTRACE_SEIZE, getppid() == 1 ? 1 : getppid(), NULL, NULL); }
static long read_parent(void) {
  char byte;
  struct iovec local = {&byte, 1}, remote = {&errno, 1};
  return syscall(SYS_process_vm_readv, getppid(), &local, 1, &remote, 1, 0);
}
static long take_descriptor(void) {
  const pid_t child = fork();
  if (child == 0) {
    pause();
    _exit(0);
  }
  const int fd = (int)syscall(SYS_pidfd_open, child, 0);
  const long result = syscall(SYS_pidfd_getfd, fd, 0, 0);
  const int number = errno;
  kill(child, SIGKILL);
  waitpid(child, NULL, 0);
  errno = number;
  return result;
}
static long bpf_(void) {
  union bpf_attr attributes;
  memset(&attributes, 0, sizeof attributes);
  return syscall(SYS_bpf, 9999, &attributes, sizeof attributes);
}
static long perf(void) { return syscall(SYS_perf_event_open, NULL, 0, -1, -1, 0); }
static long fault(void) { return syscall(SYS_userfaultfd, 0xffffffff); }
static long key(void) { return syscall(SYS_keyctl, 0, -3, 0); }
static long module(void) { return syscall(SYS_finit_module, -1, "", 0); }
static long kexec(void) { return syscall(SYS_kexec_load, 0, 99999, NULL, 0); }
static long device(void) { return mknod("attempt-device", S_IFCHR | 0600, (1 << 8) | 3); }
static long whiteout(void) { return mknod("attempt-whiteout", S_IFCHR | 0600, 0); }
static long fifo(void) {
  const long result = mknod("attempt-fifo", S_IFIFO | 0600, 0);
  unlink("attempt-fifo");
  return result;
}
static long become_root(void) { return setresuid(0, 0, 0); }
static long clear_death_signal(void) { return prctl(PR_SET_PDEATHSIG, 0); }
static long exchange(void) { return renameat2(AT_FDCWD, "attempt-a", AT_FDCWD, "attempt-b", RENAME_EXCHANGE); }

static const struct {
  const char* name;
  long (*call)(void);
} kAttempts[] = {
#ifdef __x86_64__
    {"x32", x32}, {"i386", i386}, {"i386_socketcall", i386_socketcall},
#endif
    {"unshare_user", new_user}, {"unshare_user_and_mounts", new_user_and_mounts}, {"clone_user", clone_new_user},
    {"clone3_user", clone3_new_user}, {"clone3", clone3_plain}, {"setns", set_namespace}, {"mount_tmpfs", mount_tmpfs},
    {"mount_proc", mount_proc}, {"remount_writable", remount_writable}, {"bind_root", bind_root}, {"umount", unmount},
    {"pivot_root", pivot}, {"chroot", change_root}, {"open_tree", open_tree_}, {"move_mount", move_mount_}, {"fsopen", fsopen_},
    {"fsmount", fsmount_}, {"fspick", fspick_}, {"mount_setattr", mount_setattr_}, {"openat2", openat2_},
    {"open_by_handle_at", by_handle}, {"io_uring_setup", io_uring}, {"io_uring_enter", io_uring_enter_},
    {"io_uring_register", io_uring_register_}, {"vsock", vsock}, {"vsock_high_bits", vsock_high_bits}, {"vsock_pair", vsock_pair},
    {"packet", packet}, {"packet_old", packet_old}, {"raw_socket", raw_socket}, {"alg", alg}, {"netlink_audit", netlink_audit},
    {"netlink_netfilter", netlink_netfilter}, {"netlink_route", netlink_route}, {"unix_pair", unix_pair}, {"tiocsti", sti},
    {"tiocsti_high_bits", sti_high_bits}, {"tioclinux", linux_paste}, {"window_size", window_size}, {"trace_child", trace_child},
    {"trace_parent", trace_first}, {"read_parent", read_parent}, {"take_descriptor", take_descriptor}, {"bpf", bpf_}, {"perf", perf},
    {"userfaultfd", fault}, {"keyctl", key}, {"finit_module", module}, {"kexec", kexec}, {"device", device}, {"whiteout", whiteout},
    {"fifo", fifo}, {"become_root", become_root}, {"clear_death_signal", clear_death_signal}, {"exchange", exchange},
};

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    int found = 0;
    for (size_t k = 0; k < sizeof kAttempts / sizeof *kAttempts; ++k) {
      if (strcmp(kAttempts[k].name, argv[i]) != 0) continue;
      found = 1;
      const long result = in_child(kAttempts[k].call);
      printf("%s: %s\n", argv[i], result >= 0 ? "OK" : errno == ENOTSUP ? "KILLED" : strerrorname_np(errno));
      fflush(stdout);
    }
    if (!found) return fprintf(stderr, "no attempt named %s\n", argv[i]), 2;
  }
  return 0;
}
