#include "host/namespaces_probe.h"

#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/error.h"
#include "base/unique_fd.h"
#include "host/proc_text.h"
#include "plan/plan.h"

namespace sandy::host {
namespace {

enum Step : int { kDone, kBecomeNobody, kUser, kUidMap, kMount, kPid, kIpc, kUts, kNet, kPropagation, kFork, kProc };

struct StepText {
  const char* name;
  const char* sysctl;  // its limit
  const char* kind;    // of namespace
};

constexpr StepText kSteps[] = {
    {"", "", ""},
    {"becoming user 65534", "", ""},
    {"making a user namespace", "user.max_user_namespaces", "user"},
    {"writing /proc/self/uid_map", "", ""},
    {"making a mount namespace", "user.max_mnt_namespaces", "mount"},
    {"making a PID namespace", "user.max_pid_namespaces", "PID"},
    {"making an IPC namespace", "user.max_ipc_namespaces", "IPC"},
    {"making a UTS namespace", "user.max_uts_namespaces", "UTS"},
    {"making a network namespace", "user.max_net_namespaces", "network"},
    {"changing mounts (making / slave)", "", ""},
    {"starting a process in the PID namespace", "", ""},
    {"mounting a fresh /proc", "", ""},
};

struct Report {
  int step = kDone;
  int error_number = 0;
};

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
Report attempt() {
  unsigned uid = ::geteuid();
  if (uid == 0) {
    // As sandy-launch does it.
    uid = plan::kNobody;
    if (::setgroups(0, nullptr) != 0 || ::setresgid(uid, uid, uid) != 0 || ::setresuid(uid, uid, uid) != 0) return {kBecomeNobody, errno};
    ::prctl(PR_SET_DUMPABLE, 1);  // cleared by the change of ids; without it /proc/self/uid_map is root's
  }
  if (::unshare(CLONE_NEWUSER) != 0) return {kUser, errno};
  std::array<char, 64> map{};
  ::snprintf(map.data(), map.size(), "%u %u 1\n", uid, uid);
  if (!write_file("/proc/self/uid_map", map.data())) return {kUidMap, errno};
  constexpr std::array<std::pair<int, int>, 5> kKinds{
      {{CLONE_NEWNS, kMount}, {CLONE_NEWPID, kPid}, {CLONE_NEWIPC, kIpc}, {CLONE_NEWUTS, kUts}, {CLONE_NEWNET, kNet}}};
  for (const auto& [flag, step] : kKinds) {
    if (::unshare(flag) != 0) return {step, errno};
  }
  if (::mount(nullptr, "/", nullptr, MS_SILENT | MS_SLAVE | MS_REC, nullptr) != 0) return {kPropagation, errno};
  const pid_t child = ::fork();
  if (child < 0) return {kFork, errno};
  if (child == 0) ::_exit(::mount("proc", "/proc", "proc", MS_NOSUID | MS_NOEXEC | MS_NODEV, nullptr) == 0 ? 0 : errno);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {}
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) return {kProc, WIFEXITED(status) ? WEXITSTATUS(status) : EIO};
  return {};
}

// What can be seen of a chroot: an unprivileged caller may not look at pid 1's root, and then only a root that is no mount tells.
bool in_chroot() {
  if (!has_root_mount(read_text("/proc/self/mountinfo"))) return true;
  struct statx ours{}, first{};
  constexpr unsigned kWanted = STATX_INO | STATX_MNT_ID;
  if (::statx(AT_FDCWD, "/", 0, kWanted, &ours) != 0 || ::statx(AT_FDCWD, "/proc/1/root/", 0, kWanted, &first) != 0) return false;
  return ours.stx_ino != first.stx_ino || ours.stx_dev_minor != first.stx_dev_minor || ours.stx_mnt_id != first.stx_mnt_id;
}

std::string own_profile() {
  std::string profile = apparmor_profile(read_line("/proc/self/attr/apparmor/current"));
  return profile.empty() ? apparmor_profile(read_line("/proc/self/attr/current")) : profile;
}

void find_cause(const Report& report, UserNamespaceProbe& probe) {
  using State = UserNamespaceState;
  const int error = report.error_number;
  const bool refused = error == EPERM || error == EACCES;
  const bool makes_namespace = *kSteps[report.step].kind != '\0';
  const std::string profile = own_profile();
  auto found = [&](State state, std::string subject = {}) {
    probe.state = state;
    probe.subject = std::move(subject);
  };
  if (report.step == kBecomeNobody) return found(State::unmapped_user);
  if (::access("/proc/self/status", F_OK) != 0) return found(State::no_proc);
  if (makes_namespace && (error == EINVAL || error == ENOSYS)) return found(State::none_in_kernel, kSteps[report.step].kind);
  if (makes_namespace && (error == ENOSPC || error == EUSERS)) return found(State::sysctl_max, kSteps[report.step].sysctl);
  if (!refused) return found(State::refused);
  if (read_line("/proc/sys/kernel/unprivileged_userns_clone") == "0") return found(State::sysctl_clone);
  if (read_line("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") == "1") return found(State::apparmor);
  if (report.step == kUser && error == EPERM && in_chroot()) return found(State::chroot);
  if (report.step == kProc && profile.empty()) {
    // mount_too_revealing() in the kernel: whoever has parts of /proc covered gets no fresh one, unless it is uncovered too.
    probe.proc_masked = true;
    for (const auto& point : mounts_below(read_text("/proc/self/mountinfo"), "/proc")) {
      if (point == "/proc/sys/fs/binfmt_misc") continue;  // an empty directory without it, which doesn't count
      probe.covered += (probe.covered.empty() ? "" : ", ") + printable(point);
    }
    return;
  }
  const bool filtered = read_text("/proc/self/status").find("\nSeccomp:\t2") != std::string::npos;
  // AppArmor answers mount(2) with EACCES; filters answer what they were told to, and in practice that is EPERM.
  if (!profile.empty() && (!makes_namespace || error == EACCES || !filtered)) return found(State::apparmor_profile, profile);
  if (filtered) return found(State::container_seccomp);
  found(State::refused);
}

}  // namespace

UserNamespaceProbe probe_user_namespace() {
  UserNamespaceProbe probe;
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return {.state = UserNamespaceState::refused, .error_number = errno, .step = "making a pipe", .subject = {}, .covered = {}};
  UniqueFd read_end(ends[0]), write_end(ends[1]);
  const pid_t child = ::fork();
  const int fork_error = errno;
  if (child == 0) {
    const Report report = attempt();
    (void)!::write(write_end.get(), &report, sizeof report);
    ::_exit(0);
  }
  write_end.reset();
  Report report{kFork, fork_error};
  if (child > 0) {
    if (::read(read_end.get(), &report, sizeof report) != sizeof report) report = {kFork, EIO};
    while (::waitpid(child, nullptr, 0) < 0 && errno == EINTR) {}
  }
  if (report.step == kDone) return probe;
  probe.error_number = report.error_number;
  probe.step = kSteps[report.step].name;
  find_cause(report, probe);
  return probe;
}

Result<void> check_root() {
  if (::geteuid() != 0) return {};
  for (const char* map : {"/proc/self/uid_map", "/proc/self/gid_map"}) {
    const std::string text = read_text(map);
    if (text.empty() || maps_id(text, plan::kNobody)) continue;
    UserNamespaceProbe probe;
    probe.state = UserNamespaceState::unmapped_user;
    return fail("starting as root", "this is root of a user namespace that has no user and group 65534 (nobody), which root's sandboxes run as", remedy(probe));
  }
  constexpr unsigned kSysAdmin = 21;
  if (const std::string status = read_text("/proc/self/status"); !status.empty() && !has_capability(status, kSysAdmin)) {
    return fail("starting as root", "this root has no CAP_SYS_ADMIN, as in a container, and can't show its directories to user 65534 (nobody), which root's sandboxes run as",
                "run sandy as another user: docker run --user 1000:1000, or setpriv --reuid=1000 --regid=1000 --clear-groups sandy ...");
  }
  return {};
}

std::string describe(const UserNamespaceProbe& probe) {
  const std::string step = probe.step + " failed (" + errno_text(probe.error_number) + ")";
  const std::string subject = printable(probe.subject);
  switch (probe.state) {
    case UserNamespaceState::works:
      if (!probe.proc_masked) return "a user namespace with all that a sandbox needs can be made";
      return step + ": the kernel gives a fresh /proc only to those who see all of the one here, and " +
             (probe.covered.empty() ? "no complete /proc is mounted" : "an outer container covers " + probe.covered);
    case UserNamespaceState::unmapped_user:
      return step + ": this root is root of a user namespace that has no user 65534 (nobody), which root's sandboxes run as";
    case UserNamespaceState::no_proc: return step + ": no /proc is mounted here";
    case UserNamespaceState::none_in_kernel: return step + ": this kernel was built without " + subject + " namespaces";
    case UserNamespaceState::sysctl_max: {
      std::string path = "/proc/sys/" + probe.subject;
      path.replace(path.find('.'), 1, "/");
      const std::string value = printable(read_line(path.c_str()));
      if (value == "0") return step + ": " + subject + " is 0";
      return step + ": " + subject + " is " + (value.empty() ? "not readable" : value) + ", and all are in use, or an outer container's limit is reached";
    }
    case UserNamespaceState::sysctl_clone: return step + ": kernel.unprivileged_userns_clone is 0";
    case UserNamespaceState::apparmor:
      return step + ": AppArmor allows user namespaces only to programs with a profile (kernel.apparmor_restrict_unprivileged_userns is 1)";
    case UserNamespaceState::apparmor_profile: return step + ": the AppArmor profile " + subject + " confines this process and refuses it";
    case UserNamespaceState::container_seccomp: return step + ": a seccomp filter, as of an outer container, refuses it";
    case UserNamespaceState::chroot: return step + ": this process is in a chroot, where the kernel refuses user namespaces";
    case UserNamespaceState::refused: return step + ": neither a sysctl, AppArmor, a seccomp filter nor a visible chroot explains it";
  }
  return step;
}

std::string remedy(const UserNamespaceProbe& probe) {
  auto sysctl = [](const std::string& setting) {
    return "sudo sysctl -w " + setting + " (and to keep it: echo " + setting + " | sudo tee /etc/sysctl.d/90-sandy.conf)";
  };
  switch (probe.state) {
    case UserNamespaceState::works:
      if (!probe.proc_masked) return {};
      if (probe.covered.empty()) return "mount a whole one: sudo mount -t proc proc /proc";
      return "start the outer container with its /proc uncovered: docker run --security-opt systempaths=unconfined, podman run --security-opt "
             "unmask=/proc/*; where you covered it yourself: umount " +
             probe.covered.substr(0, probe.covered.find(','));
    case UserNamespaceState::unmapped_user:
      return "run sandy as the user outside of this namespace, or give the namespace a range of users: podman unshare, docker run, or unshare "
             "--map-auto --map-root-user (needs /etc/subuid)";
    case UserNamespaceState::no_proc: return "sudo mount -t proc proc /proc";
    case UserNamespaceState::none_in_kernel: return "boot a kernel with CONFIG_USER_NS, CONFIG_PID_NS, CONFIG_IPC_NS, CONFIG_UTS_NS and CONFIG_NET_NS; distributions' have them";
    case UserNamespaceState::sysctl_max: return sysctl(probe.subject + "=15000");
    case UserNamespaceState::sysctl_clone: return sysctl("kernel.unprivileged_userns_clone=1");
    case UserNamespaceState::apparmor:
      if (::access("/etc/apparmor.d/sandy", F_OK) == 0) return "run the package's own /usr/bin/sandy, and load its profile: sudo apparmor_parser -r /etc/apparmor.d/sandy";
      return kAllowNamespaces;
    case UserNamespaceState::apparmor_profile:
      return "start the outer container with an AppArmor profile that has the rules `userns,`, `mount,` and `pivot_root,`: docker run --security-opt "
             "apparmor=NAME";
    case UserNamespaceState::container_seccomp:
      return "start the outer container with its seccomp profile plus the calls unshare, clone, setns, mount, umount2 and pivot_root: docker run "
             "--security-opt seccomp=FILE";
    case UserNamespaceState::chroot: return "enter the directory with pivot_root instead of chroot: systemd-nspawn -D DIR, or bwrap --bind DIR / --proc /proc --dev /dev CMD";
    case UserNamespaceState::refused:
      return "ask the kernel's log for what refused it: sudo dmesg | grep -iE 'apparmor|selinux|avc|denied'; in a chroot, enter it with systemd-nspawn";
  }
  return {};
}

}  // namespace sandy::host
