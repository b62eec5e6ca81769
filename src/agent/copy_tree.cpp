#include "agent/copy_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <string_view>
#include <vector>

#include "agent/files/spool.h"
#include "base/unique_fd.h"

namespace sandy::agent {
namespace {

constexpr mode_t kModes = 01777;

bool copy_file(const std::string& from, const std::string& to, CopyBudget& budget) {
  const UniqueFd in(::open(from.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
  struct stat st{};
  if (!in || ::fstat(in.get(), &st) != 0 || !S_ISREG(st.st_mode) || static_cast<std::uint64_t>(st.st_size) > budget.bytes) return false;
  budget.bytes -= static_cast<std::uint64_t>(st.st_size);
  const UniqueFd out(::open(to.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!out || !files::copy_bytes(in.get(), out.get(), static_cast<std::uint64_t>(st.st_size))) return false;
  const timespec times[2] = {st.st_atim, st.st_mtim};
  return ::fchmod(out.get(), st.st_mode & kModes) == 0 && ::futimens(out.get(), times) == 0;
}

bool copy_link(const std::string& from, const std::string& to) {
  std::array<char, PATH_MAX> target;
  const ssize_t n = ::readlink(from.c_str(), target.data(), target.size() - 1);
  if (n <= 0) return false;
  target[static_cast<std::size_t>(n)] = '\0';
  return ::symlink(target.data(), to.c_str()) == 0;
}

bool copy_directory(const std::string& from, const std::string& to, const struct stat& st, CopyBudget& budget) {
  if (::mkdir(to.c_str(), 0700) != 0) return false;
  std::vector<std::string> names;
  DIR* stream = ::opendir(from.c_str());
  if (stream == nullptr) return false;
  while (const dirent* entry = ::readdir(stream)) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
  ::closedir(stream);
  for (const auto& name : names) {
    const std::string child = from + "/" + name;
    if (child.size() >= PATH_MAX || !copy_tree(child, to + "/" + name, budget)) return false;
  }
  const timespec times[2] = {st.st_atim, st.st_mtim};
  return ::chmod(to.c_str(), st.st_mode & kModes) == 0 && ::utimensat(AT_FDCWD, to.c_str(), times, 0) == 0;
}

}  // namespace

bool copy_tree(const std::string& from, const std::string& to, CopyBudget& budget) {
  struct stat st{};
  if (budget.entries == 0 || ::lstat(from.c_str(), &st) != 0) return false;
  --budget.entries;
  switch (st.st_mode & S_IFMT) {
    case S_IFREG: return copy_file(from, to, budget);
    case S_IFLNK: return copy_link(from, to);
    case S_IFDIR: return copy_directory(from, to, st, budget);
    case S_IFIFO: return ::mkfifo(to.c_str(), st.st_mode & kModes) == 0;
    default: return false;
  }
}

}  // namespace sandy::agent
