#include "agent/files/directory.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <memory>
#include <string_view>

namespace sandy::files {
namespace {

struct CloseDirectory {
  void operator()(DIR* directory) const { ::closedir(directory); }
};

}  // namespace

FileResult<std::vector<DirectoryEntry>> read_directory(UniqueFd directory,
                                                       const std::stop_token& stop) {
  if (!directory) return errno_error(errno, "open directory");
  std::unique_ptr<DIR, CloseDirectory> stream(::fdopendir(directory.get()));
  if (!stream) return errno_error(errno, "open directory");
  const int fd = directory.release();  // now the stream's
  std::vector<DirectoryEntry> entries;
  while (true) {
    if (stop.stop_requested()) return file_error(Code::cancelled);
    errno = 0;
    const dirent* entry = ::readdir(stream.get());
    if (entry == nullptr) {
      if (errno != 0) return errno_error(errno, "read directory");
      return entries;
    }
    const std::string_view name = entry->d_name;
    if (name == "." || name == "..") continue;
    unsigned char type = entry->d_type;
    struct stat info = {};
    if (type == DT_UNKNOWN && ::fstatat(fd, entry->d_name, &info, AT_SYMLINK_NOFOLLOW) == 0) {
      type = static_cast<unsigned char>(IFTODT(info.st_mode));
    }
    entries.push_back({std::string(name), type});
  }
}

FileResult<UniqueFd> open_search_root(const std::string& path) {
  if (auto ok = check_path(path); !ok) return std::unexpected(ok.error());
  UniqueFd directory(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (directory) return directory;
  const int open_error = errno;
  struct stat info = {};
  if (open_error == ENOTDIR && ::stat(path.c_str(), &info) == 0) {
    return file_error(Code::not_a_directory);
  }
  return errno_error(open_error, "open directory");
}

}  // namespace sandy::files
