#include "agent/files/write.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <utility>

#include "agent/files/spool.h"
#include "base/error.h"
#include "base/unique_fd.h"

namespace sandy::files {
namespace {

constexpr int kMaxLinks = 40;  // as the kernel: path_resolution(7)

struct Split {
  std::string directory;  // never empty
  std::string name;       // "" where the path ends in "/"
};

Split split(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return {".", path};
  return {slash == 0 ? "/" : path.substr(0, slash), path.substr(slash + 1)};
}

// Follows symlinks in the last component only, so that a link can be kept and its target, which
// need not exist, be replaced.
FileResult<std::string> follow_last(std::string path) {
  for (int i = 0; i < kMaxLinks; ++i) {
    std::array<char, PATH_MAX> link;
    const ssize_t length = ::readlink(path.c_str(), link.data(), link.size());
    if (length < 0) return path;  // EINVAL: no link. Any other error shows when the file is opened.
    std::string target(link.data(), static_cast<std::size_t>(length));
    if (target.empty()) return file_error(Code::invalid_path, "an empty symlink");
    path = target[0] == '/' ? std::move(target) : split(path).directory + "/" + target;
  }
  return errno_error(ELOOP, "open");
}

// mkdir -p. An error shows when the directory is opened; what mkdir(2) said about the first
// directory that could not be made is the better reason then.
int make_directories(const std::string& directory) {
  int first_error = 0;
  for (std::size_t at = 0; at != std::string::npos;) {
    at = directory.find('/', at + 1);
    const std::string part = directory.substr(0, at);
    if (::mkdir(part.c_str(), 0777) != 0 && errno != EEXIST && first_error == 0)
      first_error = errno;
  }
  return first_error;
}

FileResult<UniqueFd> open_directory(const std::string& directory, bool make) {
  UniqueFd fd(::open(directory.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (fd) return fd;
  int error = errno;
  if (error == ENOENT && make) {
    const int mkdir_error = make_directories(directory);
    fd.reset(::open(directory.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (fd) return fd;
    error = mkdir_error != 0 ? mkdir_error : errno;
  }
  return errno_error(error, "open directory");
}

bool is_mount_point(int directory, const std::string& name) {
  struct statx info = {};
  return ::statx(directory, name.c_str(), AT_SYMLINK_NOFOLLOW, 0, &info) == 0 &&
         (info.stx_attributes_mask & info.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0;
}

// Refuses what can't be written to, before anything is made.
FileResult<void> check_writable(const std::string& path, const struct stat& info) {
  if (S_ISDIR(info.st_mode)) return file_error(Code::is_directory);
  if (!S_ISREG(info.st_mode)) return file_error(Code::not_a_file, "not a regular file");
  if ((info.st_mode & 0222) == 0) return file_error(Code::permission_denied, "no write permission");
  if (::faccessat(AT_FDCWD, path.c_str(), W_OK, AT_EACCESS) != 0)
    return errno_error(errno, "write");
  return {};
}

// Overwrites `target` with the spooled bytes.
FileResult<void> copy_in_place(const Spool& spool, int target) {
  struct stat info = {};
  if (::fstat(target, &info) != 0) return errno_error(errno, "stat");
  const auto old_size = static_cast<std::uint64_t>(info.st_size);
  if (spool.bytes() > old_size) {
    // Without space for the new content the old must stay. File systems that can't reserve space
    // say EOPNOTSUPP (or another word): there the copy itself has to show it.
    while (::fallocate(target, FALLOC_FL_KEEP_SIZE, 0, static_cast<off_t>(spool.bytes())) != 0) {
      if (errno == EINTR) continue;
      if (errno == ENOSPC || errno == EDQUOT || errno == EFBIG)
        return errno_error(errno, "reserve");
      break;
    }
  }
  if (auto ok = copy_bytes(spool.fd(), target, spool.bytes()); !ok) {
    ok.error().detail += "; the file was being overwritten in place";
    return ok;
  }
  if (old_size > spool.bytes() && ::ftruncate(target, static_cast<off_t>(spool.bytes())) != 0) {
    return errno_error(errno, "truncate");
  }
  return {};
}

}  // namespace

struct Writer::State {
  UniqueFd directory;
  std::string name;  // in `directory`
  bool exists = false;
  mode_t old_mode = 0;         // where it exists
  std::optional<mode_t> mode;  // asked for
  UniqueFd in_place;           // the target, where it is to be overwritten
  std::optional<Spool> spool;  // declared last: it may have a name in `directory`
};

Writer::Writer(std::unique_ptr<State> state) : state_(std::move(state)) {}
Writer::Writer(Writer&&) noexcept = default;
Writer& Writer::operator=(Writer&&) noexcept = default;
Writer::~Writer() = default;

FileResult<Writer> Writer::open(const std::string& path, const WriteOptions& options) {
  if (auto ok = check_path(path); !ok) return std::unexpected(ok.error());
  if (const std::string last = split(path).name; last.empty() || last == "." || last == "..") {
    return file_error(Code::is_directory);
  }
  auto state = std::make_unique<State>();
  state->mode = options.mode;
  struct stat old = {};
  state->exists = ::stat(path.c_str(), &old) == 0;
  if (!state->exists && errno != ENOENT) return errno_error(errno, "stat");
  if (state->exists) {
    if (auto ok = check_writable(path, old); !ok) return std::unexpected(ok.error());
    state->old_mode = old.st_mode & 01777;
  }
  auto resolved = follow_last(path);
  if (!resolved) return std::unexpected(resolved.error());
  Split parts = split(*resolved);
  if (parts.name.empty() || parts.name == "." || parts.name == "..") {
    return file_error(Code::is_directory);  // a dangling link to a directory
  }
  state->name = std::move(parts.name);
  auto directory = open_directory(parts.directory, options.parents && !state->exists);
  if (!directory) return std::unexpected(directory.error());
  state->directory = std::move(*directory);

  bool in_place = false;
  if (state->exists) {
    // Links like /proc/self/fd/3 lead to files that no name leads to.
    struct stat named = {};
    const bool same =
        ::fstatat(state->directory.get(), state->name.c_str(), &named, AT_SYMLINK_NOFOLLOW) == 0 &&
        named.st_dev == old.st_dev && named.st_ino == old.st_ino;
    in_place = !same || old.st_nlink != 1 || is_mount_point(state->directory.get(), state->name);
  }
  auto spool = Spool::in_directory(state->directory.get());
  struct stat fresh = {};
  if (!spool) {
    const Code code = spool.error().code;
    if (!state->exists || (code != Code::permission_denied && code != Code::read_only &&
                           code != Code::file_not_found && code != Code::io)) {
      return std::unexpected(spool.error());
    }
    in_place = true;
    spool = Spool::anywhere();
    if (!spool) return std::unexpected(spool.error());
  } else if (state->exists && !in_place) {
    if (::fstat(spool->fd(), &fresh) != 0) return errno_error(errno, "stat");
    in_place = fresh.st_uid != old.st_uid ||
               (fresh.st_gid != old.st_gid && ::fchown(spool->fd(), uid_t(-1), old.st_gid) != 0);
  }
  if (in_place) {
    state->in_place.reset(::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
    if (!state->in_place) return errno_error(errno, "open");
    if (::fstat(state->in_place.get(), &old) != 0) return errno_error(errno, "stat");
    if (auto ok = check_writable(path, old); !ok) return std::unexpected(ok.error());
  }
  state->spool.emplace(std::move(*spool));
  return Writer(std::move(state));
}

FileResult<void> Writer::append(std::string_view bytes) {
  return state_->spool->append(bytes);
}

FileResult<std::uint64_t> Writer::commit(std::stop_token stop) {
  State& state = *state_;
  Spool& spool = *state.spool;
  if (stop.stop_requested()) return file_error(Code::cancelled);
  std::optional<mode_t> mode = state.mode;
  // As the filter refuses them to commands.
  if (mode && (*mode & 06000) != 0) return errno_error(EPERM, "set-id bits");
  if (!state.in_place) {
    if (!mode && state.exists) mode = state.old_mode;
    if (mode && ::fchmod(spool.fd(), *mode) != 0) return errno_error(errno, "chmod");
    auto done = spool.publish(state.directory.get(), state.name, state.exists);
    if (done) return spool.bytes();
    if (done.error().count != EBUSY) return std::unexpected(done.error());
    // Kernels before 5.8 don't tell mount points beforehand.
    state.in_place.reset(::openat(state.directory.get(), state.name.c_str(),
                                  O_WRONLY | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW | O_CLOEXEC));
    if (!state.in_place) return errno_error(errno, "open");
    mode = state.mode;
  }
  if (mode && ::fchmod(state.in_place.get(), *mode) != 0) return errno_error(errno, "chmod");
  if (auto ok = copy_in_place(spool, state.in_place.get()); !ok) return std::unexpected(ok.error());
  return spool.bytes();
}

}  // namespace sandy::files
