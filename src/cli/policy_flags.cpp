#include "cli/policy_flags.h"

#include <string_view>
#include <utility>

#include "cli/policy_source.h"
#include "policy/json_reader.h"
#include "policy/paths.h"

namespace sandy::cli {
namespace {

using policy::OptionalText;
using policy::Text;

Result<void> set(OptionalText& field, const std::optional<std::string>& value, const char* flag) {
  if (!value) return {};
  if (value->empty()) return fail(flag, "an empty value", "leave the option out, or give it a value");
  if (field && field->value != *value) {
    return fail(flag + std::string(" ") + printable(*value), "contradicts the policy file's " + field->key + ": \"" + printable(field->value) + "\"",
                "leave the option out, or change the file");
  }
  field = Text{*value, flag};
  return {};
}

Result<void> set(policy::OptionalFlag& field, bool given, const char* flag) {
  if (!given) return {};
  if (field && !field->value) return fail(flag, "contradicts the policy file's " + field->key + ": false", "leave the option out, or change the file");
  field = policy::Flag{true, flag};
  return {};
}

void add(std::vector<Text>& list, const std::vector<std::string>& values, const char* key) {
  for (const auto& value : values) list.push_back({value, key});
}

}  // namespace

void PolicyFlags::add_to(CLI::App& verb) {
  const auto files = "Files", limits = "Limits", network = "Network", other = "Policy";
  verb.add_option("-p,--policy", policy_file_, "Policy: a file (JSON), or the name of one (sandy policy list); flags add to its lists, and can't contradict it")->group(other)->type_name("POLICY|FILE");
  verb.add_option("--read", read_, "Show this host path, read-only (repeatable)")->group(files)->type_name("PATH")->allow_extra_args(false);
  verb.add_option("--write", write_, "Show this host path, writable (repeatable)")->group(files)->type_name("PATH")->allow_extra_args(false);
  verb.add_option("--deny", deny_, "Hide this path below a shown one (repeatable)")->group(files)->type_name("PATH")->allow_extra_args(false);
  verb.add_option("--workspace", workspace_, "Writable directory (default: the current one)")->group(files)->type_name("DIR");
  verb.add_option("--mount", mount_, "Where the sandbox sees the workspace (default: its own path; of a private one /workspace)")->group(files)->type_name("PATH");
  verb.add_flag("--private-workspace", private_workspace_, "An empty workspace that is thrown away")->group(files);
  verb.add_flag("--unsafe-broad-workspace", unsafe_broad_workspace_, "Let /, your home directory and the like be writable")->group(files);
  verb.add_option("--allow-domain", allow_domains_, "Let this be reached, NAME or *.NAME, or with :PORT (default: 80 and 443) (repeatable)")->group(network)->type_name("NAME")->allow_extra_args(false);
  verb.add_option("--deny-domain", deny_domains_, "An exception from --allow-domain (repeatable)")->group(network)->type_name("NAME")->allow_extra_args(false);
  verb.add_option("--allow-private", allow_private_, "Let this private NAME:PORT or ADDRESS:PORT be reached; host.sandy.internal is this machine (repeatable)")->group(network)->type_name("TARGET")->allow_extra_args(false);
  verb.add_option("--publish", publish_, "Let this machine reach this port of the sandbox at 127.0.0.1 (repeatable)")->group(network)->type_name("[HOST_PORT:]PORT")->allow_extra_args(false);
  verb.add_option("--env", set_env_, "Set NAME=VALUE, or pass NAME on (repeatable)")->group(other)->type_name("NAME[=VALUE]")->allow_extra_args(false);
  verb.add_option("--hostname", hostname_, "Host name inside (default: sandbox)")->group(other)->type_name("NAME");
  verb.add_option("--cwd", cwd_, "Working directory inside (default: the workspace)")->group(other)->type_name("PATH");
  verb.add_option("--uid", uid_, "User id as seen inside (default: 1000)")->group(other)->type_name("N");
  verb.add_option("--gid", gid_, "Group id as seen inside (default: 1000)")->group(other)->type_name("N");
  verb.add_option("--seccomp", seccomp_, "System call policy, or a file with one")->group(other)->type_name("default|strict|FILE");
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
  verb.add_option("--log-size", log_size_, "Output that is kept of each process that goes on by itself (default: 1M)")->group(limits)->type_name("SIZE");
  verb.add_flag("--best-effort", best_effort_, "Go on where this machine can't enforce a limit, and say so")->group(limits);
}

Result<void> PolicyFlags::add_workspace(policy::FilesystemDraft& filesystem, const policy::Caller& caller) const {
  auto& workspace = filesystem.workspace;
  if (private_workspace_) {
    if (workspace_) return fail("--private-workspace", "contradicts --workspace", "give one of the two");
    if (workspace.path) return fail("--private-workspace", "contradicts the policy file's " + workspace.path->key + ": \"" + printable(workspace.path->value) + "\"", "leave the option out, or change the file");
    if (auto r = set(workspace.mode, "private", "--private-workspace"); !r) return r;
    return set(workspace.mount, mount_, "--mount");
  }
  if (workspace_ || (!workspace.path && !workspace.mode)) {
    const bool first = !workspace.path;
    if (auto r = set(workspace.path, workspace_, "--workspace"); !r) return r;
    if (auto r = set(workspace.mode, "bind", "--workspace"); !r) return r;
    // The current directory, as it is: its name may begin with "~" or hold "*".
    if (!workspace.path) workspace.path = Text{".", kCurrentDirectory, true};
    if (first && !mount_ && !workspace.mount) {
      auto own = policy::host_path(*workspace.path, caller);
      if (!own) return std::unexpected(own.error());
      workspace.mount = Text{std::move(*own), "--workspace", true};
    }
  }
  return set(workspace.mount, mount_, "--mount");
}

Result<void> PolicyFlags::add_seccomp(policy::SeccompDraft& seccomp) const {
  if (!seccomp_) return set(seccomp.unsafe_ptrace, unsafe_ptrace_, "--unsafe-ptrace");
  const bool built_in = *seccomp_ == "default" || *seccomp_ == "strict";
  auto& other = built_in ? seccomp.file : seccomp.base;
  if (other) {
    return fail("--seccomp " + printable(*seccomp_), "contradicts the policy file's " + other->key + ": \"" + printable(other->value) + "\"",
                "leave the option out, or change the file");
  }
  if (auto r = set(built_in ? seccomp.base : seccomp.file, seccomp_, "--seccomp"); !r) return r;
  return set(seccomp.unsafe_ptrace, unsafe_ptrace_, "--unsafe-ptrace");
}

Result<void> PolicyFlags::add_values(policy::PolicyDraft& draft) const {
  struct Row {
    OptionalText& field;
    const Value& value;
    const char* flag;
  };
  auto& process = draft.process;
  auto& limits = draft.limits;
  const Row rows[] = {
      {process.hostname, hostname_, "--hostname"},
      {process.cwd, cwd_, "--cwd"},
      {process.uid, uid_, "--uid"},
      {process.gid, gid_, "--gid"},
      {limits.memory, memory_, "--memory"},
      {limits.swap, swap_, "--swap"},
      {limits.cpus, cpus_, "--cpus"},
      {limits.pids, pids_, "--pids"},
      {limits.io_read, io_read_, "--io-read"},
      {limits.io_write, io_write_, "--io-write"},
      {limits.wall_time, wall_time_, "--wall-time"},
      {limits.open_files, open_files_, "--open-files"},
      {limits.file_size, file_size_, "--file-size"},
      {limits.tmp_size, tmp_size_, "--tmp-size"},
      {limits.log_size, log_size_, "--log-size"},
  };
  for (const Row& row : rows) {
    if (auto r = set(row.field, row.value, row.flag); !r) return r;
  }
  if (auto r = set(limits.best_effort, best_effort_, "--best-effort"); !r) return r;
  return set(draft.filesystem.unsafe_broad_workspace, unsafe_broad_workspace_, "--unsafe-broad-workspace");
}

Result<policy::PolicyDraft> PolicyFlags::draft(const policy::Caller& caller) {
  policy::PolicyDraft draft;
  if (policy_file_) {
    if (policy_file_->empty()) return fail("--policy", "an empty value", "leave the option out, or name a file");
    auto source = read_policy_source(*policy_file_, caller);
    if (!source) return std::unexpected(source.error());
    auto read = policy::read_policy(source->text);
    read_from_ = std::move(source->file);
    if (!read) return std::unexpected(Error{printable(*policy_file_) + ": " + read.error().what, read.error().why, read.error().fix});
    draft = std::move(*read);
  }
  add(draft.filesystem.read, read_, "--read");
  add(draft.filesystem.write, write_, "--write");
  add(draft.filesystem.deny, deny_, "--deny");
  if (auto r = add_workspace(draft.filesystem, caller); !r) return std::unexpected(r.error());
  if (!allow_domains_.empty() || !allow_private_.empty() || !publish_.empty()) {
    const char* const flag = !allow_domains_.empty() ? "--allow-domain" : !allow_private_.empty() ? "--allow-private" : "--publish";
    const auto& given = !allow_domains_.empty() ? allow_domains_ : !allow_private_.empty() ? allow_private_ : publish_;
    if (const auto& mode = draft.network.mode; mode && mode->value != "allowlist") {
      return fail(flag + std::string(" ") + printable(given.front()), "contradicts the policy file's " + mode->key + ": \"" + printable(mode->value) + "\"", "leave the option out, or take another policy");
    }
    draft.network.mode = policy::Text{"allowlist", flag};
  }
  add(draft.network.publish, publish_, "--publish");
  add(draft.network.allow, allow_domains_, "--allow-domain");
  add(draft.network.deny, deny_domains_, "--deny-domain");
  add(draft.network.allow_private, allow_private_, "--allow-private");
  for (const auto& variable : set_env_) {
    const auto equals = variable.find('=');
    if (equals == std::string::npos) {
      draft.environment.pass.push_back({variable, "--env"});
    } else {
      draft.environment.set.push_back({variable.substr(0, equals), variable.substr(equals + 1), "--env"});
    }
  }
  if (auto r = add_seccomp(draft.seccomp); !r) return std::unexpected(r.error());
  if (auto r = add_values(draft); !r) return std::unexpected(r.error());
  return draft;
}

Error in_flags(Error error) {
  static constexpr std::pair<std::string_view, std::string_view> kWords[] = {
      {"set limits.best_effort", "give --best-effort"},
      {"set filesystem.unsafe_broad_workspace", "give --unsafe-broad-workspace"},
      {"name a directory of the project, or", "name a directory of the project (--workspace DIR), take --private-workspace, or"},
      {"set network.mode to \"allowlist\"", "give --allow-domain"},
  };
  for (std::string* text : {&error.what, &error.why, &error.fix}) {
    for (const auto& [key, flag] : kWords) {
      if (const auto at = text->find(key); at != std::string::npos) text->replace(at, key.size(), flag);
    }
  }
  return error;
}

}  // namespace sandy::cli
