#include "host/remove_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>
#include <vector>

#include "base/unique_fd.h"

namespace sandy::host {
namespace {

UniqueFd open_directory(int parent, const char* name) {
  constexpr int kFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
  UniqueFd fd(::openat(parent, name, kFlags));
  if (fd || errno != EACCES) return fd;
  // fchmodat has no AT_SYMLINK_NOFOLLOW before Linux 6.6: go by a descriptor that was opened without following.
  UniqueFd path(::openat(parent, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!path) return fd;
  ::chmod(("/proc/self/fd/" + std::to_string(path.get())).c_str(), 0700);
  fd.reset(::openat(parent, name, kFlags));
  return fd;
}

// Unlinks what is no directory; puts the names of directories into `directories`.
int empty_files(int fd, std::vector<std::string>& directories) {
  int error = 0;
  DIR* stream = ::fdopendir(::fcntl(fd, F_DUPFD_CLOEXEC, 3));
  if (stream == nullptr) return errno;
  ::rewinddir(stream);
  struct stat own{};
  if (::fstat(fd, &own) == 0 && (own.st_mode & 0700) != 0700) ::fchmod(fd, 0700);
  while (const dirent* entry = ::readdir(stream)) {
    const std::string_view name = entry->d_name;
    if (name == "." || name == "..") continue;
    if (::unlinkat(fd, entry->d_name, 0) == 0) continue;
    if (errno == EISDIR || errno == EPERM) {
      directories.emplace_back(name);
    } else if (errno != ENOENT) {
      error = errno;
    }
  }
  ::closedir(stream);
  return error;
}

}  // namespace

Result<void> remove_tree(int parent_fd, const std::string& name) {
  UniqueFd top = open_directory(parent_fd, name.c_str());
  if (!top) {
    if (errno == ENOENT) return {};
    if (::unlinkat(parent_fd, name.c_str(), 0) == 0) return {};
    return fail(printable(name), errno_text(errno));
  }
  // Depth is the attacker's choice, and descriptors are few: a directory that is met below the first level is moved up
  // to it (rename(2) costs nothing), so that at most two are open at a time.
  int error = 0;
  std::size_t counter = 0;
  std::vector<std::string> todo;
  error = empty_files(top.get(), todo);
  while (!todo.empty()) {
    const std::string child = std::move(todo.back());
    todo.pop_back();
    UniqueFd fd = open_directory(top.get(), child.c_str());
    if (!fd) {
      error = errno;
      continue;
    }
    std::vector<std::string> below;
    if (const int e = empty_files(fd.get(), below); e != 0) error = e;
    for (const auto& directory : below) {
      std::string moved;
      do {
        moved = ".sandy-removed-" + std::to_string(counter++);
      } while (::faccessat(top.get(), moved.c_str(), F_OK, AT_SYMLINK_NOFOLLOW) == 0);
      if (::renameat(fd.get(), directory.c_str(), top.get(), moved.c_str()) != 0) {
        // Renaming a directory changes its "..", so it must be writable itself.
        const UniqueFd shut(::openat(fd.get(), directory.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
        if (shut) ::chmod(("/proc/self/fd/" + std::to_string(shut.get())).c_str(), 0700);
        if (::renameat(fd.get(), directory.c_str(), top.get(), moved.c_str()) != 0) {
          error = errno;
          continue;
        }
      }
      todo.push_back(std::move(moved));
    }
    fd.reset();
    if (::unlinkat(top.get(), child.c_str(), AT_REMOVEDIR) != 0 && errno != ENOENT) error = errno;
  }
  top.reset();
  if (::unlinkat(parent_fd, name.c_str(), AT_REMOVEDIR) != 0 && errno != ENOENT && error == 0) error = errno;
  if (error != 0) return fail(printable(name), errno_text(error));
  return {};
}

}  // namespace sandy::host
