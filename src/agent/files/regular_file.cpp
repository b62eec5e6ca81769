#include "agent/files/regular_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

namespace sandy::files {
namespace {

FileResult<void> judge_type(mode_t mode) {
  if (S_ISDIR(mode)) return file_error(Code::is_directory);
  if (!S_ISREG(mode)) return file_error(Code::not_a_file, "not a regular file");
  if ((mode & 0444) == 0) return file_error(Code::permission_denied, "no read permission");
  return {};
}

}  // namespace

FileResult<RegularFile> open_regular(int base, const std::string& path, int extra_flags) {
  if (auto ok = check_path(path); !ok) return std::unexpected(ok.error());
  RegularFile file;
  const int follow = (extra_flags & O_NOFOLLOW) != 0 ? AT_SYMLINK_NOFOLLOW : 0;
  // Looking first keeps open(2) away from devices, where it alone can have effects. O_NONBLOCK is
  // for the file that becomes a FIFO in between.
  if (::fstatat(base, path.c_str(), &file.info, follow) != 0) return errno_error(errno, "stat");
  if (auto ok = judge_type(file.info.st_mode); !ok) return std::unexpected(ok.error());
  file.fd.reset(
      ::openat(base, path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC | extra_flags));
  if (!file.fd) return errno_error(errno, "open");
  if (::fstat(file.fd.get(), &file.info) != 0) return errno_error(errno, "stat");
  if (auto ok = judge_type(file.info.st_mode); !ok) return std::unexpected(ok.error());
  return file;
}

FileResult<std::size_t> read_full(int fd, std::span<char> buffer) {
  std::size_t done = 0;
  while (done < buffer.size()) {
    const ssize_t got = ::read(fd, buffer.data() + done, buffer.size() - done);
    if (got < 0) {
      if (errno == EINTR) continue;
      return errno_error(errno, "read");
    }
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  return done;
}

FileResult<std::size_t> read_full_at(int fd, std::span<char> buffer, std::uint64_t offset) {
  std::size_t done = 0;
  while (done < buffer.size()) {
    const ssize_t got =
        ::pread(fd, buffer.data() + done, buffer.size() - done, static_cast<off_t>(offset + done));
    if (got < 0) {
      if (errno == EINTR) continue;
      return errno_error(errno, "read");
    }
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  return done;
}

bool is_sparse(const struct stat& info) {
  return info.st_blocks < info.st_size / 512;
}

std::uint64_t skip_hole(int fd, std::uint64_t offset, std::uint64_t size) {
  const off_t data = ::lseek(fd, static_cast<off_t>(offset), SEEK_DATA);
  if (data < 0) return errno == ENXIO && offset < size ? size : offset;
  return static_cast<std::uint64_t>(data);
}

}  // namespace sandy::files
