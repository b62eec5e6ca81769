#include "host/start_mark.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "host/proc_text.h"

namespace sandy::host {
namespace {

constexpr std::string_view kPrefix = "starting-";

// The end of the command line that launch() gives bubblewrap, as /proc has it.
constexpr char kArguments[] = "\0--args\0004\0--\0/run/sandy-agent\0";
constexpr std::string_view kAgentArguments(kArguments, sizeof kArguments - 1);

bool runs_agent(const std::string& pid) { return read_text(("/proc/" + pid + "/cmdline").c_str()).ends_with(kAgentArguments); }

// "" where the process is gone. comm, the second field, may hold anything (proc_pid_stat(5)).
std::string parent_of(const std::string& pid) {
  const std::string stat = read_text(("/proc/" + pid + "/stat").c_str());
  const auto end = stat.rfind(") ");
  if (end == std::string::npos || end + 4 >= stat.size()) return {};
  const auto start = end + 4;
  return stat.substr(start, stat.find(' ', start) - start);
}

// Ends bubblewraps that would run an agent, and that no `sandy` has started: it is the parent, or the parent of a bubblewrap that is the parent. False: it
// could not look.
bool end_waiting_bubblewraps() {
  DIR* stream = ::opendir("/proc");
  if (stream == nullptr) return false;
  std::vector<std::string> found;
  while (const dirent* entry = ::readdir(stream)) {
    const std::string name = entry->d_name;
    if (std::isdigit(static_cast<unsigned char>(name[0])) != 0 && runs_agent(name)) found.push_back(name);
  }
  ::closedir(stream);
  for (const auto& pid : found) {
    std::string parent = parent_of(pid);
    if (runs_agent(parent)) parent = parent_of(parent);
    if (parent.empty() || read_line(("/proc/" + parent + "/comm").c_str()) == "sandy") continue;
    ::kill(static_cast<pid_t>(std::atol(pid.c_str())), SIGKILL);
  }
  return true;
}

}  // namespace

Result<StartMark> StartMark::make(const StateDirectory& state, const std::string& id) {
  StartMark out;
  out.name_ = std::string(kPrefix) + id;
  const std::string what = "state directory " + printable(state.path() + "/" + out.name_);
  out.parent_.reset(::fcntl(state.fd(), F_DUPFD_CLOEXEC, 3));
  if (!out.parent_) return fail(what, errno_text(errno));
  out.fd_.reset(::openat(out.parent_.get(), out.name_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  // A sweep that takes it for left over before it is locked holds the lock for a moment, and removes it: there is a start without a mark then.
  if (!out.fd_ || ::flock(out.fd_.get(), LOCK_EX) != 0) return fail(what, errno_text(errno));
  return out;
}

void StartMark::remove() {
  if (fd_) (void)!::unlinkat(parent_.get(), name_.c_str(), 0);
  fd_.reset();
  parent_.reset();
}

void StartMark::sweep(const StateDirectory& state) {
  const int directory = ::openat(state.fd(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR* stream = directory < 0 ? nullptr : ::fdopendir(directory);
  if (stream == nullptr) {
    if (directory >= 0) ::close(directory);
    return;
  }
  std::vector<std::string> names;
  while (const dirent* entry = ::readdir(stream)) {
    if (std::string_view(entry->d_name).starts_with(kPrefix)) names.emplace_back(entry->d_name);
  }
  ::closedir(stream);
  std::vector<std::string> left;
  for (const auto& name : names) {
    const UniqueFd fd(::openat(state.fd(), name.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
    if (!fd || ::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) continue;  // at work, or done meanwhile
    left.push_back(name);
  }
  // A mark goes only after what it stands for.
  if (left.empty() || !end_waiting_bubblewraps()) return;
  for (const auto& name : left) (void)!::unlinkat(state.fd(), name.c_str(), 0);
}

}  // namespace sandy::host
