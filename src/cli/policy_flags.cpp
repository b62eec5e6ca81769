#include "cli/policy_flags.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "base/unique_fd.h"
#include "policy/json_reader.h"
#include "policy/paths.h"

namespace sandy::cli {
namespace {

using policy::OptionalText;
using policy::Text;

void set(OptionalText& field, const std::string& value, const char* key) {
  if (!value.empty()) field = Text{value, key};
}

void add(std::vector<Text>& list, const std::vector<std::string>& values, const char* key) {
  for (const auto& value : values) list.push_back({value, key});
}

}  // namespace

void PolicyFlags::add_to(CLI::App& verb) {
  const auto files = "Files", limits = "Limits", other = "Policy";
  verb.add_option("-p,--policy", policy_file_, "Policy file (JSON); flags add to it")->group(other)->type_name("FILE");
  verb.add_option("--read", read_, "Show this host path, read-only (repeatable)")->group(files)->type_name("PATH")->allow_extra_args(false);
  verb.add_option("--write", write_, "Show this host path, writable (repeatable)")->group(files)->type_name("PATH")->allow_extra_args(false);
  verb.add_option("--deny", deny_, "Hide this path below a shown one (repeatable)")->group(files)->type_name("PATH")->allow_extra_args(false);
  verb.add_option("--workspace", workspace_, "Writable directory (default: the current one)")->group(files)->type_name("DIR");
  verb.add_option("--mount", mount_, "Where the sandbox sees the workspace (default: its own path)")->group(files)->type_name("PATH");
  verb.add_flag("--private-workspace", private_workspace_, "An empty workspace that is thrown away")->group(files);
  verb.add_flag("--unsafe-broad-workspace", unsafe_broad_workspace_, "Let /, your home directory and the like be writable")->group(files);
  verb.add_option("--allow-domain", allow_domains_, "Let this domain be reached (repeatable)")->group(other)->type_name("NAME")->allow_extra_args(false);
  verb.add_option("--env", set_env_, "Set NAME=VALUE, or pass NAME on (repeatable)")->group(other)->type_name("NAME[=VALUE]")->allow_extra_args(false);
  verb.add_option("--hostname", hostname_, "Host name inside (default: sandbox)")->group(other)->type_name("NAME");
  verb.add_option("--cwd", cwd_, "Working directory inside (default: the workspace)")->group(other)->type_name("PATH");
  verb.add_option("--uid", uid_, "User id as seen inside (default: 1000)")->group(other)->type_name("N");
  verb.add_option("--gid", gid_, "Group id as seen inside (default: 1000)")->group(other)->type_name("N");
  verb.add_option("--seccomp", seccomp_, "default, strict, or a file")->group(other)->type_name("POLICY");
  verb.add_flag("--unsafe-ptrace", unsafe_ptrace_, "Let a debugger trace its own children")->group(other);
  verb.add_option("--memory", memory_, "Memory, e.g. 2G")->group(limits)->type_name("SIZE");
  verb.add_option("--swap", swap_, "Swap (default: 0)")->group(limits)->type_name("SIZE");
  verb.add_option("--cpus", cpus_, "Processor cores, e.g. 1.5")->group(limits)->type_name("N");
  verb.add_option("--pids", pids_, "Processes and threads")->group(limits)->type_name("N");
  verb.add_option("--io-read", io_read_, "Bytes read from disks a second")->group(limits)->type_name("SIZE");
  verb.add_option("--io-write", io_write_, "Bytes written to disks a second")->group(limits)->type_name("SIZE");
  verb.add_option("--wall-time", wall_time_, "Life of the sandbox, e.g. 10m")->group(limits)->type_name("TIME");
  verb.add_option("--open-files", open_files_, "Open files of a process")->group(limits)->type_name("N");
  verb.add_option("--file-size", file_size_, "Largest file that can be written")->group(limits)->type_name("SIZE");
  verb.add_option("--tmp-size", tmp_size_, "Size of each of /tmp, /var/tmp, /dev/shm (default: 1G)")->group(limits)->type_name("SIZE");
  verb.add_flag("--best-effort", best_effort_, "Go on where this machine can't enforce a limit, and say so")->group(limits);
}

Result<policy::PolicyDraft> PolicyFlags::draft(const policy::Caller& caller) const {
  policy::PolicyDraft draft;
  if (!policy_file_.empty()) {
    const auto text = read_file(policy_file_);
    if (!text) return std::unexpected(text.error());
    auto read = policy::read_policy(*text);
    if (!read) return std::unexpected(Error{printable(policy_file_) + ": " + read.error().what, read.error().why, read.error().fix});
    draft = std::move(*read);
  }
  auto& filesystem = draft.filesystem;
  add(filesystem.read, read_, "--read");
  add(filesystem.write, write_, "--write");
  add(filesystem.deny, deny_, "--deny");
  if (private_workspace_) {
    if (!workspace_.empty()) return fail("--private-workspace", "contradicts --workspace", "give one of the two");
    filesystem.workspace.path.reset();
    filesystem.workspace.mode = Text{"private", "--private-workspace"};
  } else if (!workspace_.empty() || (!filesystem.workspace.path && !filesystem.workspace.mode)) {
    // The current directory, as it is: its name may begin with "~" or hold "*".
    filesystem.workspace.path = workspace_.empty() ? Text{".", "current directory", true} : Text{workspace_, "--workspace"};
    filesystem.workspace.mode = Text{"bind", "--workspace"};
    if (mount_.empty() && !filesystem.workspace.mount) {
      auto own = policy::host_path(*filesystem.workspace.path, caller);
      if (!own) return std::unexpected(own.error());
      filesystem.workspace.mount = Text{std::move(*own), "--workspace", true};
    }
  }
  set(filesystem.workspace.mount, mount_, "--mount");
  if (unsafe_broad_workspace_) filesystem.unsafe_broad_workspace = policy::Flag{true, "--unsafe-broad-workspace"};
  if (!allow_domains_.empty()) {
    draft.network.mode = Text{"allowlist", "--allow-domain"};
    add(draft.network.allow, allow_domains_, "--allow-domain");
  }
  for (const auto& variable : set_env_) {
    const auto equals = variable.find('=');
    if (equals == std::string::npos) {
      draft.environment.pass.push_back({variable, "--env"});
    } else {
      draft.environment.set.push_back({variable.substr(0, equals), variable.substr(equals + 1), "--env"});
    }
  }
  set(draft.process.hostname, hostname_, "--hostname");
  set(draft.process.cwd, cwd_, "--cwd");
  set(draft.process.uid, uid_, "--uid");
  set(draft.process.gid, gid_, "--gid");
  if (seccomp_ == "default" || seccomp_ == "strict") {
    draft.seccomp.base = Text{seccomp_, "--seccomp"};
    draft.seccomp.file.reset();
  } else if (!seccomp_.empty()) {
    draft.seccomp.file = Text{seccomp_, "--seccomp"};
    draft.seccomp.base.reset();
  }
  if (unsafe_ptrace_) draft.seccomp.unsafe_ptrace = policy::Flag{true, "--unsafe-ptrace"};
  set(draft.limits.memory, memory_, "--memory");
  set(draft.limits.swap, swap_, "--swap");
  set(draft.limits.cpus, cpus_, "--cpus");
  set(draft.limits.pids, pids_, "--pids");
  set(draft.limits.io_read, io_read_, "--io-read");
  set(draft.limits.io_write, io_write_, "--io-write");
  set(draft.limits.wall_time, wall_time_, "--wall-time");
  set(draft.limits.open_files, open_files_, "--open-files");
  set(draft.limits.file_size, file_size_, "--file-size");
  set(draft.limits.tmp_size, tmp_size_, "--tmp-size");
  if (best_effort_) draft.limits.best_effort = policy::Flag{true, "--best-effort"};
  return draft;
}

Result<std::string> read_file(const std::string& path) {
  constexpr std::size_t kMax = 1 << 20;
  const UniqueFd fd(path == "-" ? ::fcntl(0, F_DUPFD_CLOEXEC, 3) : ::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return fail(printable(path), errno_text(errno));
  std::string text;
  std::array<char, 65'536> buffer;
  while (text.size() <= kMax) {
    const ssize_t n = ::read(fd.get(), buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail(printable(path), errno_text(errno));
    if (n == 0) return text;
    text.append(buffer.data(), static_cast<std::size_t>(n));
  }
  return fail(printable(path), "is larger than 1 MiB");
}

}  // namespace sandy::cli
