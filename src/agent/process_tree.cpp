#include "agent/process_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "base/unique_fd.h"

namespace sandy::agent {
namespace {

constexpr int kRounds = 200;

// Fields 3 and 4 of /proc/PID/stat. The name in field 2 may hold anything, also ")", so the fields are
// counted from the last one.
bool read_stat(const char* pid_text, char& state, pid_t& parent) {
  const std::string path = std::string("/proc/") + pid_text + "/stat";
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return false;
  std::array<char, 512> buffer;
  const ssize_t n = ::read(fd.get(), buffer.data(), buffer.size());
  if (n <= 0) return false;
  const std::string_view text(buffer.data(), static_cast<std::size_t>(n));
  const auto close = text.rfind(')');
  if (close == std::string_view::npos || close + 4 >= text.size()) return false;
  state = text[close + 2];
  const auto rest = text.substr(close + 4);
  return std::from_chars(rest.data(), rest.data() + rest.size(), parent).ec == std::errc{};
}

struct Snapshot {
  bool complete = true;  // /proc could be read: without, nothing found says nothing
  std::multimap<pid_t, pid_t> children;  // parent to child
  std::set<pid_t> zombies;
};

Snapshot take_snapshot() {
  Snapshot snapshot;
  DIR* directory = ::opendir("/proc");
  if (directory == nullptr) {
    snapshot.complete = false;
    return snapshot;
  }
  while (const dirent* entry = ::readdir(directory)) {
    pid_t pid = 0;
    const char* end = entry->d_name + std::strlen(entry->d_name);
    if (const auto [ptr, error] = std::from_chars(entry->d_name, end, pid); error != std::errc{} || ptr != end) continue;
    char state = 0;
    pid_t parent = 0;
    if (!read_stat(entry->d_name, state, parent)) continue;
    snapshot.children.emplace(parent, pid);
    if (state == 'Z' || state == 'X') snapshot.zombies.insert(pid);
  }
  ::closedir(directory);
  return snapshot;
}

void collect(const Snapshot& snapshot, pid_t root, std::vector<pid_t>& out) {
  std::vector<pid_t> todo{root};
  while (!todo.empty()) {
    const pid_t pid = todo.back();
    todo.pop_back();
    const auto [first, last] = snapshot.children.equal_range(pid);
    for (auto it = first; it != last; ++it) {
      todo.push_back(it->second);
      if (!snapshot.zombies.contains(it->second)) out.push_back(it->second);
    }
  }
}

// Stops, then kills, what `find` adds, until it adds nothing. It returns false where it could not look.
bool end_all(const std::function<bool(std::vector<pid_t>&)>& find) {
  for (int round = 0; round < kRounds; ++round) {
    std::set<pid_t> stopped;
    bool looked = true;
    for (int pass = 0; pass < kRounds; ++pass) {
      bool found_new = false;
      std::vector<pid_t> found;
      looked = find(found);
      for (const pid_t pid : found) {
        if (!stopped.insert(pid).second) continue;
        found_new = true;
        ::kill(pid, SIGSTOP);
      }
      if (!found_new) break;
    }
    if (stopped.empty() && looked) return true;
    for (const pid_t pid : stopped) ::kill(pid, SIGKILL);
    ::usleep(round < 10 ? 200 : 5000);  // a killed process is a zombie only after it was scheduled once more
  }
  return false;
}

}  // namespace

std::vector<ProcessEntry> list_processes() {
  std::vector<ProcessEntry> out;
  for (const auto& [parent, pid] : take_snapshot().children) out.push_back({pid, parent});
  return out;
}

bool kill_descendants(pid_t root) {
  return end_all([root](std::vector<pid_t>& found) {
    const Snapshot snapshot = take_snapshot();
    collect(snapshot, root, found);
    return snapshot.complete;
  });
}

void kill_children_except(const std::vector<pid_t>& keep) {
  end_all([&keep](std::vector<pid_t>& found) {
    const Snapshot snapshot = take_snapshot();
    const auto [first, last] = snapshot.children.equal_range(::getpid());
    for (auto it = first; it != last; ++it) {
      if (std::ranges::find(keep, it->second) != keep.end()) continue;
      if (!snapshot.zombies.contains(it->second)) found.push_back(it->second);
      collect(snapshot, it->second, found);
    }
    return snapshot.complete;
  });
}

}  // namespace sandy::agent
