#include "session/planning.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>

#include "base/unique_fd.h"
#include "cgroup/support.h"
#include "host/facts.h"
#include "host/named_policy.h"
#include "host/path_resolver.h"
#include "host/programs.h"
#include "host/state_directory.h"
#include "plan/resolved_paths.h"
#include "plan/seccomp/seccomp_compile.h"
#include "policy/json_reader.h"
#include "policy/settings.h"
#include "policy/validate.h"
#include "session/network.h"

namespace sandy::session {
namespace {

constexpr off_t kMaxSeccompFile = 1 << 20;

constexpr seccomp::Arch kArch =
#if defined(__x86_64__)
    seccomp::Arch::x86_64;
#elif defined(__aarch64__)
    seccomp::Arch::aarch64;
#endif

Result<std::string> read_seccomp_file(const std::string& path) {
  const std::string what = "seccomp.file: \"" + printable(path) + "\"";
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat st{};
  if (!fd || ::fstat(fd.get(), &st) != 0) return fail(what, errno_text(errno));
  if (!S_ISREG(st.st_mode) || st.st_size > kMaxSeccompFile) return fail(what, "is no file of at most 1 MiB");
  std::string text(static_cast<std::size_t>(st.st_size), '\0');
  std::size_t have = 0;
  while (have < text.size()) {
    const ssize_t n = ::read(fd.get(), text.data() + have, text.size() - have);
    if (n <= 0) break;
    have += static_cast<std::size_t>(n);
  }
  text.resize(have);
  return text;
}

Result<seccomp::Policy> load_seccomp(const policy::Seccomp& policy) {
  if (policy.base != policy::SeccompBase::file) {
    auto found = seccomp::builtin(policy.base == policy::SeccompBase::strict ? "strict" : "default");
    if (!found) return std::unexpected(found.error());
    return **found;
  }
  auto text = read_seccomp_file(policy.file);
  if (!text) return std::unexpected(text.error());
  return seccomp::parse_policy(*text, policy.file);
}

Result<std::string> compile_filter(const policy::Seccomp& policy) {
  const seccomp::CompileOptions options{.allow_ptrace = policy.unsafe_ptrace};
  Result<seccomp::Program> program = [&]() -> Result<seccomp::Program> {
    if (policy.base != policy::SeccompBase::file) {
      return seccomp::builtin_program(policy.base == policy::SeccompBase::strict ? "strict" : "default", kArch, options);
    }
    auto loaded = load_seccomp(policy);
    if (!loaded) return std::unexpected(loaded.error());
    return seccomp::compile(*loaded, kArch, options);
  }();
  if (!program) return std::unexpected(program.error());
  return std::string(seccomp::as_bytes(*program));
}

// What doesn't depend on the policy is the same while we run.
const Result<plan::HostFacts>& common_facts() {
  static const Result<plan::HostFacts> facts = [] {
    auto found = host::host_facts();
    if (found) found->cgroup = cgroups_here();
    return found;
  }();
  return facts;
}

policy::Enforcement enforcement_here() {
  const auto& facts = cgroups_here();
  policy::Enforcement out;
  out.memory = facts.memory;
  out.swap = facts.swap;
  out.cpus = facts.cpus;
  out.pids = facts.pids;
  out.io = facts.io;
  out.reason = "needs a control group: " + facts.why;
  out.fix = facts.fix;
  return out;
}

}  // namespace

policy::Caller this_caller() {
  std::error_code error;
  auto cwd = std::filesystem::current_path(error);
  // The shell's own spelling, through links, where it is true: the sandbox then has the directory under both.
  struct stat here{}, named{};
  const char* const shell = std::getenv("PWD");
  if (shell != nullptr && shell[0] == '/' && ::stat(".", &here) == 0 && ::stat(shell, &named) == 0 && here.st_dev == named.st_dev &&
      here.st_ino == named.st_ino) {
    cwd = shell;
  }
  return {.home = host::home_directory(), .cwd = error ? std::string() : cwd.string(), .state_dir = host::StateDirectory::likely_path(), .uid = ::geteuid()};
}

Result<policy::SandboxPolicy> validate_here(const policy::PolicyDraft& draft) { return policy::validate(draft, this_caller(), enforcement_here()); }

Result<std::vector<policy::Weakening>> weakenings_here(const policy::SandboxPolicy& policy) {
  plan::HostFacts facts = host::caller_facts();
  if (auto r = host::add_policy_paths(policy.fields(), facts); !r) return std::unexpected(r.error());
  if (auto r = plan::check_resolved(policy->filesystem, facts); !r) return std::unexpected(r.error());
  std::set<std::string> sockets;
  for (const auto& rule : policy->filesystem.rules) {
    if (facts.paths.at(rule.path).type == plan::FileType::socket) sockets.insert(rule.path);
  }
  return policy::weakenings(policy, sockets);
}

Result<std::vector<std::string>> missing_here(const policy::SandboxPolicy& policy) {
  plan::HostFacts facts = host::caller_facts();
  if (auto r = host::add_policy_paths(policy.fields(), facts); !r) return std::unexpected(r.error());
  std::vector<std::string> out;
  const auto look = [&](const std::string& key, const std::string& path) {
    if (facts.paths.at(path).type == plan::FileType::missing) out.push_back(key + ": " + printable(path));
  };
  const auto& filesystem = policy->filesystem;
  if (filesystem.workspace.mode == policy::WorkspaceMode::bind) look("filesystem.workspace.path", filesystem.workspace.path);
  for (const auto& rule : filesystem.rules) look(rule.key, rule.path);
  return out;
}

const plan::CgroupFacts& cgroups_here() {
  static const plan::CgroupFacts facts = cgroup::find_support();
  return facts;
}

std::optional<plan::CgroupPlan> cgroup_plan_here(const policy::SandboxPolicy& policy) { return plan::plan_cgroup(policy->limits, cgroups_here(), host::ram()); }

Result<policy::Limits> parse_running_limits(std::string_view json) {
  auto draft = policy::read_policy(json);
  if (!draft) return std::unexpected(draft.error());
  auto limits = policy::check_limits(draft->limits);
  if (!limits) return std::unexpected(limits.error());
  if (limits->wall_time_ms || limits->open_files || limits->file_size || limits->tmp_size || limits->log_size) {
    return fail("limits", "wall_time, open_files, file_size, tmp_size and log_size can't be changed while a sandbox runs", "make another sandbox");
  }
  return limits;
}

Result<void> check_machine() {
  if (const auto& facts = common_facts(); !facts) return std::unexpected(facts.error());
  return {};
}

Result<PlannedSandbox> plan_here(const policy::SandboxPolicy& policy, const std::vector<std::string>& kept_files) {
  const auto& common = common_facts();
  if (!common) return std::unexpected(common.error());
  plan::HostFacts facts = *common;
  if (auto r = host::add_policy_paths(policy.fields(), facts); !r) return std::unexpected(r.error());
  if (auto r = host::add_kernel_trees(policy.fields(), facts); !r) return std::unexpected(r.error());
  if (auto r = host::add_sockets(policy.fields(), facts); !r) return std::unexpected(r.error());
  std::vector<std::string> kept = host::parts_of_bubblewrap(facts.bwrap);
  kept.push_back(host::own_directory());
  kept.push_back(host::own_directory() + "/../libexec/sandy");  // where our programs are looked for too (host/programs.h)
  kept.insert(kept.end(), kept_files.begin(), kept_files.end());
  if (policy->seccomp.base == policy::SeccompBase::file) kept.push_back(policy->seccomp.file);
  for (const auto& path : kept) {
    if (path.empty()) continue;
    auto resolved = host::resolve_path(path);
    if (!resolved) return std::unexpected(resolved.error());
    facts.kept.push_back(std::move(*resolved));
  }
  for (const std::string& directory : host::policy_directories()) {
    auto resolved = host::resolve_path(directory);
    if (!resolved) return std::unexpected(resolved.error());
    facts.policies.push_back(std::move(*resolved));
  }
  auto plan = plan::make_plan(policy, facts);
  if (!plan) return std::unexpected(plan.error());
  const char* const test_network = std::getenv(kTestNetworkVariable);
  if (plan->network && test_network != nullptr && *test_network != '\0') plan->degraded.emplace_back(kTestNetworkKey);
  auto filter = compile_filter(policy->seccomp);
  if (!filter) return std::unexpected(filter.error());
  return PlannedSandbox{policy, std::move(*plan), std::move(*filter)};
}

Result<std::vector<std::string>> seccomp_rows(const policy::Seccomp& policy) {
  const auto loaded = load_seccomp(policy);
  if (!loaded) return std::unexpected(loaded.error());
  return seccomp::describe(*loaded, kArch, {.allow_ptrace = policy.unsafe_ptrace});
}

Result<std::vector<std::string>> seccomp_weakenings(const policy::Seccomp& policy) {
  const auto loaded = load_seccomp(policy);
  if (!loaded) return std::unexpected(loaded.error());
  return seccomp::weakens(*loaded);
}

Result<PlannedSandbox> plan_json(std::string_view json, const std::vector<std::string>& kept) {
  auto draft = policy::read_policy(json);
  if (!draft) return std::unexpected(draft.error());
  auto policy = validate_here(*draft);
  if (!policy) return std::unexpected(policy.error());
  return plan_here(*policy, kept);
}

}  // namespace sandy::session
