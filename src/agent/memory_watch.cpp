#include "agent/memory_watch.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>

#include "base/unique_fd.h"

namespace sandy::agent {
namespace {

std::string read_file(pid_t pid, const char* name) {
  const std::string path = "/proc/" + std::to_string(pid) + "/" + name;
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::array<char, 256> buffer;
  const ssize_t n = fd ? ::read(fd.get(), buffer.data(), buffer.size()) : 0;
  return {buffer.data(), n > 0 ? static_cast<std::size_t>(n) : 0};
}

// Pages.
std::uint64_t own_memory(pid_t pid) {
  const auto text = read_file(pid, "statm");
  char* at = nullptr;
  (void)std::strtoull(text.c_str(), &at, 10);  // size
  const auto resident = std::strtoull(at, &at, 10);
  const auto shared = std::strtoull(at, &at, 10);
  return resident > shared ? resident - shared : 0;
}

}  // namespace

std::optional<std::string> end_largest_above(std::uint64_t limit, const std::vector<pid_t>& own) {
  static const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  const std::unique_ptr<DIR, int (*)(DIR*)> proc(::opendir("/proc"), &::closedir);
  if (!proc) return {};
  std::uint64_t all = 0, most = 0;
  pid_t largest = -1;
  while (const dirent* entry = ::readdir(proc.get())) {
    const pid_t pid = std::atoi(entry->d_name);
    if (pid <= 0 || std::ranges::find(own, pid) != own.end()) continue;
    const auto bytes = own_memory(pid) * page;
    all += bytes;
    if (bytes < most || (bytes == most && largest > 0)) continue;
    most = bytes;
    largest = pid;
  }
  if (all <= limit || largest < 0) return {};
  auto name = read_file(largest, "comm");
  while (name.ends_with('\n')) name.pop_back();
  if (::kill(largest, SIGKILL) != 0) return {};
  return name;
}

}  // namespace sandy::agent
