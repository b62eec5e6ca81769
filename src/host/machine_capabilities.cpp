#include "host/machine_capabilities.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>

#include "host/namespaces_probe.h"
#include "host/proc_text.h"
#include "host/programs.h"
#include "host/run_program.h"
#include "host/state_directory.h"
#include "policy/enforcement.h"

namespace sandy::host {
namespace {

using namespace std::chrono_literals;
using State = CapabilityState;

constexpr const char* kEvery = "every sandbox";
constexpr long kV9fs = 0x01021997;  // statfs(2)
constexpr std::uint64_t kLittleSpace = 64 << 20;

long file_system_of(const char* path) {
  struct statfs st{};
  return ::statfs(path, &st) == 0 ? static_cast<long>(st.f_type) : 0;
}

// errno of installing a filter that allows everything, in a child; 0 if it worked.
int try_filter() {
  const pid_t child = ::fork();
  if (child < 0) return errno;
  if (child == 0) {
    sock_filter allow[] = {BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    const sock_fprog program{1, allow};
    if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) ::_exit(errno);
    ::_exit(0);
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {}
  return WIFEXITED(status) ? WEXITSTATUS(status) : EIO;
}

}  // namespace

std::vector<Capability> namespace_capabilities() {
  const UserNamespaceProbe probe = probe_user_namespace();
  Capability namespaces{.name = "user namespaces", .state = State::ok, .detail = {}, .needs = kEvery, .fix = {}, .proven_by_start = true};
  Capability proc{.name = "fresh /proc", .state = State::ok, .detail = "can be mounted in a sandbox's PID namespace", .needs = kEvery, .fix = {}, .proven_by_start = true};
  if (probe.state != UserNamespaceState::works) {
    namespaces.state = proc.state = State::missing;
    namespaces.detail = describe(probe);
    namespaces.fix = proc.fix = remedy(probe);
    proc.detail = "not known, because namespaces can't be made: " + describe(probe);
  } else {
    namespaces.detail = "unprivileged user, mount, PID, IPC, UTS and network namespaces can be made";
    if (probe.proc_masked) {
      proc.state = State::missing;
      proc.detail = describe(probe);
      proc.fix = remedy(probe);
    }
  }
  return {namespaces, proc};
}

Capability seccomp_filters() {
  Capability out{.name = "seccomp filters", .state = State::ok, .detail = "can be installed", .needs = kEvery, .fix = {}, .proven_by_start = true};
  if (const int error = try_filter(); error != 0) {
    out.state = State::missing;
    out.detail = "installing a filter failed (" + errno_text(error) + ")" +
                 (error == EINVAL ? ": this kernel was built without CONFIG_SECCOMP_FILTER" : ": an outer sandbox refuses it");
    out.fix = error == EINVAL ? "boot a kernel with CONFIG_SECCOMP_FILTER; distributions' have it"
                              : "let the outer sandbox's filter allow prctl(PR_SET_SECCOMP) and seccomp(2), as those of docker and podman do";
  }
  return out;
}

Capability landlock() {
  Capability out{.name = "Landlock", .state = State::ok, .detail = {}, .needs = "a second wall around Sandy's own network proxy; no sandbox needs it", .fix = {}};
  // landlock_create_ruleset(NULL, 0, LANDLOCK_CREATE_RULESET_VERSION): landlock(7). The number is the same on all architectures.
  const long version = ::syscall(444, nullptr, 0, 1);
  if (version > 0) {
    out.detail = "version " + std::to_string(version) + " of its interface";
    return out;
  }
  out.state = State::missing;
  out.detail = errno == EOPNOTSUPP ? "it is in this kernel, and switched off at boot" : "this kernel doesn't have it (" + errno_text(errno) + ")";
  out.fix = errno == EOPNOTSUPP ? "add landlock to the list after lsm= on the kernel's command line" : "a kernel of 5.13 or newer with CONFIG_SECURITY_LANDLOCK";
  return out;
}

Capability state_directory() {
  Capability out{.name = "state directory", .state = State::ok, .detail = {}, .needs = "private workspaces; what must be on a disk", .fix = {}};
  const auto directory = StateDirectory::open();
  if (!directory) {
    out.state = State::missing;
    out.detail = directory.error().why;
    out.fix = directory.error().fix;
    return out;
  }
  out.detail = printable(directory->path()) + ", writable";
  struct statvfs space{};
  if (::fstatvfs(directory->fd(), &space) != 0) return out;
  const std::uint64_t free_bytes = static_cast<std::uint64_t>(space.f_bavail) * space.f_frsize;
  if ((space.f_flag & ST_NOEXEC) != 0) {
    out.state = State::limited;
    out.detail += "; its file system is mounted noexec, so programs in a private workspace can't be executed";
    out.fix = "set XDG_STATE_HOME to a directory on a file system without noexec";
  } else if (free_bytes < kLittleSpace) {
    out.state = State::limited;
    out.detail += "; only " + std::to_string(free_bytes >> 20) + " MiB are free there";
    out.fix = "free space there, or set XDG_STATE_HOME to a directory on another disk";
  } else if (directory->path() != StateDirectory::likely_path()) {
    out.state = State::limited;
    out.detail += ", because " + printable(StateDirectory::likely_path()) + " can't be made or written to";
    out.fix = "set XDG_STATE_HOME to a directory that you can write to";
  } else if (std::getenv("HOME") == nullptr && std::getenv("XDG_STATE_HOME") == nullptr) {
    out.state = State::limited;
    out.detail += ", because neither XDG_STATE_HOME nor HOME is set";
    out.fix = "export HOME=\"$(getent passwd \"$(id -u)\" | cut -d: -f6)\"";
  }
  return out;
}

Capability own_programs() {
  Capability out{.name = "own programs", .state = State::ok, .detail = "sandy " SANDY_VERSION, .needs = kEvery, .fix = {}};
  for (const std::string name : {"sandy-launch", "sandy-agent", "sandy-proxy"}) {
    std::string wrong;
    bool another_version = false;
    if (const auto path = own_program(name); !path) {
      wrong = path.error().what + ": " + path.error().why;
    } else {
      const auto printed = run_program({*path, "--version"}, 5s);
      const std::string expected = name + " " SANDY_VERSION "\n";
      if (!printed) {
        wrong = printable(*path) + " can't be executed: " + printed.error().why;
      } else if (printed->timed_out) {
        wrong = printable(*path) + " did not answer --version within 5 s";
      } else if (printed->out != expected) {
        another_version = true;
        wrong = printable(*path) + " is of another version: it says \"" + printable(printed->out.substr(0, std::min(printed->out.find('\n'), std::size_t{60}))) +
                "\", not \"" + expected.substr(0, expected.size() - 1) + "\"";
      }
    }
    if (wrong.empty()) {
      out.detail += ", " + name + " " SANDY_VERSION;
      continue;
    }
    out.detail = out.state == State::ok ? wrong : out.detail + "; " + wrong;
    if (!another_version || out.state != State::missing) out.state = another_version ? State::limited : State::missing;
    out.fix = "install Sandy again, all of its programs (sandy, sandy-launch, sandy-agent, sandy-proxy) from one version in one place";
  }
  return out;
}

Capability sandbox_user() {
  Capability out{.name = "user", .state = State::ok, .detail = {}, .needs = "files of root staying unreadable in sandboxes", .fix = {}};
  const unsigned uid = ::geteuid();
  if (uid != 0) {
    out.detail = "user " + std::to_string(uid) + ": sandboxes run as this user on the host, and see themselves as 1000";
    return out;
  }
  out.detail = "started as root: sandboxes run as user 65534 (nobody) on the host, never as root, and see themselves as 1000";
  if (const auto allowed = check_root(); !allowed) {
    out.state = State::missing;
    out.detail = allowed.error().what + ": " + allowed.error().why;
    out.fix = allowed.error().fix;
  }
  return out;
}

Capability cgroup_limits(const plan::CgroupFacts& facts, bool lost, const std::vector<std::string>& degraded) {
  using Way = plan::CgroupFacts::Way;
  Capability out{.name = "cgroup limits", .state = State::ok, .detail = {}, .needs = "limits.memory, swap, cpus, pids and io", .fix = {}};
  std::string can;
  const auto add = [&](bool there, const char* name) {
    if (there) can += (can.empty() ? "" : ", ") + std::string(name);
  };
  add(facts.memory, "memory");
  add(facts.swap, "swap");
  add(facts.cpus, "cpus");
  add(facts.pids, "pids");
  add(facts.io, "io");
  if (facts.way == Way::none) {
    out.state = State::missing;
    out.detail = facts.why.empty() ? "nobody has looked for them" : facts.why;
    out.fix = (facts.fix.empty() ? "run sandy doctor" : facts.fix) + "; until then, a policy that sets such a limit starts with limits.best_effort (--best-effort), unlimited";
  } else {
    out.detail = (facts.way == Way::systemd ? "by a scope of the user's service manager: " : "by a control group in " + printable(facts.parent) + ": ") + can;
    if (lost) {
      out.state = State::missing;
      out.detail = "the service manager did not make a scope for a sandbox that was tried";
      out.fix = "look at `systemctl --user status`, and at what `sandy run --memory 1G -- true` says";
    } else if (!facts.why.empty()) {
      out.state = State::limited;
      out.detail += "; " + facts.why;
      out.fix = facts.fix;
    }
  }
  if (const auto unenforced = policy::unenforced_words(degraded); !unenforced.empty()) out.detail += "; " + unenforced;
  return out;
}

Capability kernel_release(std::string_view release) {
  Capability out{.name = "kernel", .state = State::ok, .detail = "Linux " + printable(release), .needs = kEvery, .fix = {}};
  const auto version = find_version(release);
  if (!version) {
    out.state = State::limited;
    out.detail += " is no version that Sandy can read";
    out.fix = "look at `uname -r`: Sandy is made for Linux 5.10 and newer";
  } else if (*version < Version{5, 10, 0}) {
    out.state = State::limited;
    out.detail += " is older than 5.10: openat2 (5.6), close_range (5.9), Landlock (5.13) and, as root, id-mapped mounts (5.12) may be missing, and without the "
                  "first two no sandbox starts";
    out.fix = "boot a kernel of 5.10 or newer, as all current distributions have";
  }
  return out;
}

namespace {

// A Python virtual environment's programs are nothing without its packages.
std::string what_to_show(const std::string& entry) {
  const auto parent = entry.substr(0, entry.rfind('/'));
  return entry.ends_with("/bin") && ::access((parent + "/pyvenv.cfg").c_str(), F_OK) == 0 ? parent : entry;
}

}  // namespace

Capability lost_path(const std::vector<std::string>& lost) {
  Capability out{.name = "PATH", .state = State::ok, .detail = "every directory in PATH that exists is in the sandbox too", .needs = "your own programs in sandboxes", .fix = {}};
  if (lost.empty()) return out;
  out.state = State::limited;
  out.detail = "not shown in sandboxes, so their programs are not found there:";
  out.fix = "show what a sandbox may see of them: sandy run";
  for (const auto& entry : lost) {
    out.detail += (&entry == &lost.front() ? " " : ", ") + printable(entry);
    // In single quotes for a shell, and a quote in it as '\''.
    std::string quoted;
    for (const char c : printable(what_to_show(entry))) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
    out.fix += " --read '" + quoted + "'";
  }
  return out;
}

Capability wsl(const WslFacts& facts) {
  Capability out{.name = "WSL", .state = State::ok, .detail = "not under the Windows Subsystem for Linux", .needs = "Windows staying out of reach of sandboxes", .fix = {}};
  if (facts.generation == 0) return out;
  if (facts.generation == 1) {
    out.state = State::missing;
    out.detail = "WSL 1 has no Linux kernel, and so no namespaces and no seccomp filters";
    out.fix = "in Windows: wsl --set-version <distribution> 2";
    out.fix.replace(out.fix.find("<distribution>"), 14, "\"$WSL_DISTRO_NAME\"");
    return out;
  }
  out.detail = "WSL 2";
  auto limit = [&](const std::string& detail, const std::string& fix) {
    out.state = State::limited;
    out.detail += "; " + detail;
    out.fix += (out.fix.empty() ? "" : "; ") + fix;
  };
  if (facts.interop) {
    // Sandboxes get neither /run/WSL nor WSL_INTEROP nor AF_VSOCK.
    limit("the kernel starts Windows programs (interop): sandboxes don't get its socket, its variable, or AF_VSOCK, so that such a program fails there",
          "to switch it off for all: [interop] enabled=false in /etc/wsl.conf, then in Windows wsl --shutdown");
  }
  if (!facts.systemd) {
    limit("systemd is not running, which later versions need for cgroup limits; a [wsl2] memory= in .wslconfig limits the whole machine",
          "[boot] systemd=true in /etc/wsl.conf, then in Windows wsl --shutdown");
  }
  if (facts.on_windows_drive) {
    limit("the current directory is on a Windows drive, where files are slow and have no Linux modes", "keep workspaces in the Linux file system: cd ~");
  }
  return out;
}

WslFacts wsl_facts() {
  WslFacts facts;
  facts.generation = wsl_generation(read_line("/proc/version"));
  facts.interop = wsl_interop_enabled(read_text("/proc/sys/fs/binfmt_misc/WSLInterop")) || wsl_interop_enabled(read_text("/proc/sys/fs/binfmt_misc/WSLInterop-late"));
  facts.systemd = ::access("/run/systemd/system", F_OK) == 0;
  facts.on_windows_drive = file_system_of(".") == kV9fs;
  return facts;
}

}  // namespace sandy::host
