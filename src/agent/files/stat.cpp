#include "agent/files/stat.h"

#include <sys/stat.h>

#include <cerrno>

namespace sandy::files {

FileResult<PathInfo> stat_path(const std::string& path) {
  if (auto ok = check_path(path); !ok) return std::unexpected(ok.error());
  struct stat info = {};
  if (::lstat(path.c_str(), &info) != 0) return errno_error(errno, "stat");
  PathInfo out;
  out.type = S_ISREG(info.st_mode)   ? "file"
             : S_ISDIR(info.st_mode) ? "directory"
             : S_ISLNK(info.st_mode) ? "symlink"
                                     : "other";
  out.size = static_cast<std::uint64_t>(info.st_size);
  out.mode = info.st_mode & 07777;
  out.mtime_ns = std::int64_t{info.st_mtim.tv_sec} * 1'000'000'000 + info.st_mtim.tv_nsec;
  return out;
}

}  // namespace sandy::files
