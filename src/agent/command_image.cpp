#include "agent/command_image.h"

#include <sys/utsname.h>

#include <cerrno>
#include <cstdlib>

#include "base/memfd.h"

namespace sandy::agent {
namespace {

// MAX_ARG_STRLEN of the kernel (execve(2)): one argument, with its NUL, has at most 32 pages.
constexpr std::size_t kMaxArgument = 131'072;
constexpr std::string_view kDefaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

constexpr rlim_t kOwnTasks = 16;  // ours, which count as well: the agent with its threads, supervisors

// RLIMIT_NPROC is for the processes of a user in a user namespace since Linux 5.14. Before, all of the host's count.
bool counts_processes_by_namespace() {
  static const bool counts = [] {
    utsname names{};
    ::uname(&names);
    char* at = nullptr;
    const auto major = std::strtoul(names.release, &at, 10);
    const auto minor = *at == '.' ? std::strtoul(at + 1, nullptr, 10) : 0;
    return major > 5 || (major == 5 && minor >= 14);
  }();
  return counts;
}

bool has_nul(std::string_view text) { return text.find('\0') != std::string_view::npos; }

}  // namespace

std::vector<std::string> path_candidates(const std::string& program, const std::vector<std::string>& environment) {
  if (program.find('/') != std::string::npos) return {program};
  std::string_view path = kDefaultPath;
  for (const std::string_view variable : environment) {
    if (variable.starts_with("PATH=")) path = variable.substr(5);
  }
  std::vector<std::string> out;
  while (true) {
    const auto colon = path.find(':');
    const std::string_view directory = path.substr(0, colon);
    // An empty entry means the current directory (execvp(3)); whoever wants that can write "./name".
    if (!directory.empty()) out.push_back(std::string(directory) + "/" + program);
    if (colon == std::string_view::npos) return out;
    path.remove_prefix(colon + 1);
  }
}

std::expected<CommandImage, int> command_image(const wire::Frame& frame, const wire::Configuration& configuration) {
  const auto cut = frame.cut();
  const std::uint64_t argc = frame.number("argc", 1);
  if (!cut || argc == 0 || argc >= cut->args.size()) return std::unexpected(EINVAL);
  for (const auto argument : cut->args) {
    if (has_nul(argument)) return std::unexpected(EINVAL);
  }
  CommandImage image;
  std::vector<std::string> changes;
  for (std::size_t i = argc + 1; i < cut->args.size(); ++i) {
    if (const auto equals = cut->args[i].find('='); equals == 0 || equals == std::string_view::npos) return std::unexpected(EINVAL);
    changes.emplace_back(cut->args[i]);
  }
  image.env = wire::merge_environment(configuration.environment, changes);
  const std::string_view cwd = cut->args[argc];
  image.cwd = cwd.empty() ? configuration.cwd : std::string(cwd);
  if (!image.cwd.starts_with('/')) image.cwd = configuration.cwd + "/" + image.cwd;
  image.open_files = configuration.open_files;
  image.file_size = configuration.file_size;
  if (configuration.watched_pids != 0 && counts_processes_by_namespace()) image.processes = configuration.watched_pids + kOwnTasks;
  if (frame.flag("shell", true)) {
    if (argc != 1) return std::unexpected(EINVAL);
    const std::string_view command = cut->args[0];
    image.candidates = {configuration.shell};
    image.argv = {configuration.shell, "-c"};
    if (command.size() < kMaxArgument) {
      image.argv.emplace_back(command);
    } else {
      // Too long for an argument: the shell reads it from descriptor 9, which it closes first, on the same line.
      auto text = sealed_memfd("command", "exec 9<&-; " + std::string(command));
      if (!text) return std::unexpected(ENOMEM);
      image.extra = std::move(*text);
      image.argv.emplace_back(". /proc/self/fd/9");
    }
    return image;
  }
  for (std::size_t i = 0; i < argc; ++i) image.argv.emplace_back(cut->args[i]);
  image.candidates = path_candidates(image.argv[0], image.env);
  return image;
}

}  // namespace sandy::agent
