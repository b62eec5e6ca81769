#include "host/namespaces_probe.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "base/error.h"
#include "base/unique_fd.h"

namespace sandy::host {
namespace {

enum Step : int { kDone, kUnshare, kUidMap, kPidNamespace, kMount, kProc };

struct Report {
  int step = kDone;
  int error_number = 0;
};

std::string read_first_line(const char* path) {
  const UniqueFd fd(::open(path, O_RDONLY | O_CLOEXEC));
  std::array<char, 4096> buffer;
  const ssize_t n = fd ? ::read(fd.get(), buffer.data(), buffer.size()) : 0;
  std::string_view text(buffer.data(), n > 0 ? static_cast<std::size_t>(n) : 0);
  return std::string(text.substr(0, text.find('\n')));
}

bool write_file(const char* path, const char* text) {
  const int fd = ::open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const bool written = ::write(fd, text, std::strlen(text)) >= 0;
  const int error = errno;
  ::close(fd);
  errno = error;
  return written;
}

// In the child: async-signal-safe calls and stack only.
Report attempt(unsigned uid) {
  if (::unshare(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID) != 0) return {kUnshare, errno};
  std::array<char, 64> map{};
  ::snprintf(map.data(), map.size(), "%u %u 1\n", uid, uid);
  if (!write_file("/proc/self/uid_map", map.data())) return {kUidMap, errno};
  if (::mount(nullptr, "/", nullptr, MS_SILENT | MS_SLAVE | MS_REC, nullptr) != 0) return {kMount, errno};
  const pid_t child = ::fork();
  if (child < 0) return {kPidNamespace, errno};
  if (child == 0) ::_exit(::mount("proc", "/proc", "proc", MS_NOSUID | MS_NOEXEC | MS_NODEV, nullptr) == 0 ? 0 : errno);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {}
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) return {kProc, WIFEXITED(status) ? WEXITSTATUS(status) : EIO};
  return {};
}

bool in_chroot() {
  struct stat root{}, first{};
  return ::stat("/", &root) == 0 && ::stat("/proc/1/root", &first) == 0 && (root.st_ino != first.st_ino || root.st_dev != first.st_dev);
}

bool under_seccomp() {
  const UniqueFd fd(::open("/proc/self/status", O_RDONLY | O_CLOEXEC));
  std::array<char, 8192> buffer;
  const ssize_t n = fd ? ::read(fd.get(), buffer.data(), buffer.size()) : 0;
  return std::string_view(buffer.data(), n > 0 ? static_cast<std::size_t>(n) : 0).find("Seccomp:\t2") != std::string_view::npos;
}

UserNamespaceState cause_of(const Report& report) {
  if (report.error_number == EINVAL && report.step == kUnshare) return UserNamespaceState::none_in_kernel;
  if (read_first_line("/proc/sys/user/max_user_namespaces") == "0" || report.error_number == ENOSPC) return UserNamespaceState::sysctl_max;
  if (read_first_line("/proc/sys/kernel/unprivileged_userns_clone") == "0" && ::geteuid() != 0) return UserNamespaceState::sysctl_clone;
  if (read_first_line("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") == "1" && ::geteuid() != 0) return UserNamespaceState::apparmor;
  if (report.error_number == EPERM && report.step == kUnshare && in_chroot()) return UserNamespaceState::chroot;
  if (under_seccomp()) return UserNamespaceState::container_seccomp;
  return UserNamespaceState::refused;
}

}  // namespace

UserNamespaceProbe probe_user_namespace() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return {UserNamespaceState::refused, errno, "pipe", false};
  UniqueFd read_end(ends[0]), write_end(ends[1]);
  const unsigned uid = ::geteuid();
  const pid_t child = ::fork();
  if (child == 0) {
    const Report report = attempt(uid);
    (void)!::write(write_end.get(), &report, sizeof report);
    ::_exit(0);
  }
  write_end.reset();
  Report report{kUnshare, EAGAIN};
  if (child > 0) {
    if (::read(read_end.get(), &report, sizeof report) != sizeof report) report = {kUnshare, EIO};
    while (::waitpid(child, nullptr, 0) < 0 && errno == EINTR) {}
  }
  static constexpr const char* kNames[] = {"", "unshare(CLONE_NEWUSER)", "writing uid_map", "a PID namespace", "changing mounts", "mounting a fresh /proc"};
  UserNamespaceProbe probe;
  if (report.step == kDone) return probe;
  probe.error_number = report.error_number;
  probe.step = kNames[report.step];
  if (report.step == kProc && read_first_line("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") != "1") {
    probe.proc_masked = true;
    return probe;
  }
  probe.state = cause_of(report);
  return probe;
}

std::string describe(const UserNamespaceProbe& probe) {
  const std::string step = probe.step + " failed: " + errno_text(probe.error_number);
  switch (probe.state) {
    case UserNamespaceState::works:
      if (probe.proc_masked) return step + "; an outer container covers parts of /proc, so the kernel refuses a fresh one";
      return "unprivileged user namespaces work";
    case UserNamespaceState::none_in_kernel: return step + "; this kernel was built without user namespaces";
    case UserNamespaceState::sysctl_max: return step + "; user.max_user_namespaces is " + read_first_line("/proc/sys/user/max_user_namespaces") + ", or all of them are in use";
    case UserNamespaceState::sysctl_clone: return step + "; kernel.unprivileged_userns_clone is 0";
    case UserNamespaceState::apparmor: return step + "; AppArmor restricts user namespaces to programs with a profile (kernel.apparmor_restrict_unprivileged_userns is 1)";
    case UserNamespaceState::container_seccomp: return step + "; this process runs under a seccomp filter, as in a container, that refuses it";
    case UserNamespaceState::chroot: return step + "; this process is in a chroot, where the kernel refuses user namespaces";
    case UserNamespaceState::refused: return step;
  }
  return step;
}

std::string remedy(const UserNamespaceProbe& probe) {
  switch (probe.state) {
    case UserNamespaceState::works:
      if (probe.proc_masked) return "start the outer container with its /proc unmasked (docker run --security-opt systempaths=unconfined, podman run --security-opt unmask=ALL)";
      return {};
    case UserNamespaceState::none_in_kernel: return "use a kernel with CONFIG_USER_NS=y; every distribution's has it";
    case UserNamespaceState::sysctl_max: return "sudo sysctl user.max_user_namespaces=15000, and a line of that in /etc/sysctl.d/ to keep it";
    case UserNamespaceState::sysctl_clone: return "sudo sysctl kernel.unprivileged_userns_clone=1, and a line of that in /etc/sysctl.d/ to keep it";
    case UserNamespaceState::apparmor:
      return "allow it for bubblewrap: sudo apt install apparmor-profiles and link its bwrap-userns-restrict profile into /etc/apparmor.d, or add a profile with `userns,` for /usr/bin/bwrap";
    case UserNamespaceState::container_seccomp: return "start the outer container with a seccomp profile that allows unshare, clone and mount in user namespaces (docker run --security-opt seccomp=FILE)";
    case UserNamespaceState::chroot: return "enter the directory with pivot_root, as systemd-nspawn and bwrap do, instead of chroot";
    case UserNamespaceState::refused: return "ask the kernel's log (dmesg) for a security module that refused it";
  }
  return {};
}

}  // namespace sandy::host
