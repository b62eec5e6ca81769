#include "agent/files/spool.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <utility>
#include <vector>

#include "agent/files/regular_file.h"

namespace sandy::files {
namespace {

// A file with a hidden name, for file systems without O_TMPFILE. The caller judges errno.
UniqueFd create_hidden(int directory, std::string& name) {
  name = hidden_name();
  return UniqueFd(
      ::openat(directory, name.c_str(), O_CREAT | O_EXCL | O_RDWR | O_NOFOLLOW | O_CLOEXEC, 0666));
}

}  // namespace

std::string hidden_name() {
  static constexpr char kHex[] = "0123456789abcdef";
  unsigned char random[16] = {};
  // 16 bytes come whole once the pool is ready, and the pool is ready long before a sandbox starts.
  while (::getrandom(random, sizeof random, 0) != static_cast<ssize_t>(sizeof random)) {
  }
  std::string name = ".sandy-";
  for (const unsigned char byte : random) {
    name += kHex[byte >> 4];
    name += kHex[byte & 15];
  }
  return name;
}

FileResult<void> write_full(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t done = ::write(fd, bytes.data(), bytes.size());
    if (done < 0) {
      if (errno == EINTR) continue;
      return errno_error(errno, "write");
    }
    bytes.remove_prefix(static_cast<std::size_t>(done));
  }
  return {};
}

FileResult<void> copy_bytes(int from, int to, std::uint64_t size) {
  std::vector<char> buffer(std::min<std::uint64_t>(size, kMaxChunk));
  for (std::uint64_t at = 0; at < size;) {
    const std::size_t want = std::min<std::uint64_t>(buffer.size(), size - at);
    auto got = read_full_at(from, {buffer.data(), want}, at);
    if (!got) return std::unexpected(got.error());
    if (*got == 0) return file_error(Code::io, "the spooled content became shorter");
    if (auto ok = write_full(to, {buffer.data(), *got}); !ok) return ok;
    at += *got;
  }
  return {};
}

FileResult<Spool> Spool::in_directory(int directory) {
  UniqueFd fd(::openat(directory, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0666));
  if (fd) return Spool(std::move(fd), directory, "");
  // The errors of file systems, and kernels, that lack it: open(2), "O_TMPFILE".
  if (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL && errno != ENOENT) {
    return errno_error(errno, "create");
  }
  std::string name;
  fd = create_hidden(directory, name);
  if (!fd) return errno_error(errno, "create");
  return Spool(std::move(fd), directory, std::move(name));
}

FileResult<Spool> Spool::anywhere() {
  UniqueFd fd(::open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (!fd) fd.reset(::memfd_create("sandy-spool", MFD_CLOEXEC));
  if (!fd) return errno_error(errno, "create");
  return Spool(std::move(fd), -1, "");
}

Spool::~Spool() {
  drop_name();
}

void Spool::drop_name() {
  // A moved-from spool has no descriptor, and no claim to the name.
  if (fd_ && !name_.empty()) ::unlinkat(directory_, name_.c_str(), 0);
  name_.clear();
}

FileResult<void> Spool::append(std::string_view bytes) {
  if (auto ok = write_full(fd_.get(), bytes); !ok) return ok;
  bytes_ += bytes.size();
  return {};
}

FileResult<void> Spool::link_hidden(int directory) {
  std::string name = hidden_name();
  const std::string self = "/proc/self/fd/" + std::to_string(fd_.get());
  if (::linkat(AT_FDCWD, self.c_str(), directory, name.c_str(), AT_SYMLINK_FOLLOW) == 0) {
    name_ = std::move(name);
    return {};
  }
  // Without /proc, or where the file system refuses to link an unnamed file: copy it into a named
  // one.
  const int link_error = errno;
  struct stat info = {};
  UniqueFd named = create_hidden(directory, name);
  if (!named) return errno_error(link_error, "link");
  const std::uint64_t bytes = bytes_;
  auto copied = copy_bytes(fd_.get(), named.get(), bytes);
  if (copied &&
      (::fstat(fd_.get(), &info) != 0 || ::fchmod(named.get(), info.st_mode & 01777) != 0)) {
    copied = errno_error(errno, "chmod");
  }
  fd_ = std::move(named);
  name_ = std::move(name);
  return copied;
}

FileResult<void> Spool::publish(int directory, const std::string& name, bool replaces) {
  if (name_.empty() && !replaces) {
    const std::string self = "/proc/self/fd/" + std::to_string(fd_.get());
    if (::linkat(AT_FDCWD, self.c_str(), directory, name.c_str(), AT_SYMLINK_FOLLOW) == 0)
      return {};
    // Any failure (somebody was faster, no /proc) takes the way through a hidden name.
  }
  if (name_.empty()) {
    if (auto ok = link_hidden(directory); !ok) return ok;
  }
  if (::renameat(directory, name_.c_str(), directory, name.c_str()) == 0) {
    name_.clear();
    return {};
  }
  const int rename_error = errno;
  drop_name();
  if (rename_error == EBUSY) {
    auto error = file_error(Code::io, "rename: the file is a mount point");
    error.error().count = EBUSY;
    return error;
  }
  return errno_error(rename_error, "rename");
}

}  // namespace sandy::files
