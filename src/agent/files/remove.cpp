#include "agent/files/remove.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <optional>
#include <utility>
#include <vector>

#include "agent/files/directory.h"
#include "base/unique_fd.h"

namespace sandy::files {
namespace {

bool is_mount_point(int directory, const char* name) {
  struct statx info = {};
  return ::statx(directory, name, AT_SYMLINK_NOFOLLOW, 0, &info) == 0 &&
         (info.stx_attributes_mask & info.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0;
}

// Depth-first, without recursion: one frame a level, and a descriptor for the current level only.
// The way up is "..", checked against the identity that the parent had on the way down.
class TreeRemover {
 public:
  TreeRemover(int parent, std::stop_token stop) : stop_(std::move(stop)), current_(parent) {}

  FileResult<void> run(const std::string& name) {
    if (!enter(name)) return result();
    while (!frames_.empty()) {
      if (stop_.stop_requested()) return file_error(Code::cancelled);
      Frame& top = frames_.back();
      if (!top.directories.empty()) {
        const std::string next = std::move(top.directories.back());
        top.directories.pop_back();
        if (!enter(next)) frames_.back().failed = true;
      } else if (!leave()) {
        return result();
      }
    }
    return result();
  }

 private:
  struct Frame {
    std::string name;  // in the parent
    dev_t device = 0;  // of the parent
    ino_t inode = 0;
    std::vector<std::string> directories;  // still to be removed
    bool failed = false;                   // something in here can't be removed
    int scans = 0;
  };

  int directory() const { return held_ ? held_.get() : current_; }

  void note(std::unexpected<FileError> error) {
    if (!error_) error_ = std::move(error.error());
  }

  FileResult<void> result() {
    if (error_) return std::unexpected(*error_);
    return {};
  }

  // Makes `name` the current directory and removes what is no directory in it.
  bool enter(const std::string& name) {
    if (is_mount_point(directory(), name.c_str())) {
      note(file_error(Code::permission_denied, "a mount point is in the tree"));
      return false;
    }
    struct stat parent = {};
    if (::fstat(directory(), &parent) != 0) {
      note(errno_error(errno, "stat"));
      return false;
    }
    constexpr int kFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    UniqueFd fd(::openat(directory(), name.c_str(), kFlags));
    if (!fd && errno == EACCES &&
        ::fchmodat(directory(), name.c_str(), 0700, AT_SYMLINK_NOFOLLOW) == 0) {
      fd.reset(::openat(directory(), name.c_str(), kFlags));
    }
    if (!fd) {
      if (errno == ENOENT) return true;  // somebody else removed it
      note(errno_error(errno, "open directory"));
      return false;
    }
    frames_.push_back({name, parent.st_dev, parent.st_ino, {}, false, 0});
    held_ = std::move(fd);
    scan();
    return true;
  }

  // Reads the current directory.
  void scan() {
    Frame& frame = frames_.back();
    ++frame.scans;
    open_up();
    auto entries = read_directory(
        UniqueFd(::openat(directory(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)), stop_);
    if (!entries) {
      note(std::unexpected(entries.error()));
      frame.failed = true;
      return;
    }
    for (DirectoryEntry& entry : *entries) {
      if (stop_.stop_requested()) return;
      if (entry.type == DT_DIR) {
        frame.directories.push_back(std::move(entry.name));
      } else if (::unlinkat(directory(), entry.name.c_str(), 0) != 0 && errno != ENOENT) {
        note(errno_error(errno, "remove"));
        frame.failed = true;
      }
    }
  }

  // Lets the owner read, change and search the current directory, where the mode does not.
  void open_up() {
    struct stat info = {};
    if (::fstat(directory(), &info) == 0 && (info.st_mode & 0700) != 0700) {
      ::fchmod(directory(), 0700);  // a failure shows when entries are removed
    }
  }

  // Goes up and removes the directory that was left. False: the way up is lost.
  bool leave() {
    Frame frame = std::move(frames_.back());
    frames_.pop_back();
    UniqueFd up;
    if (!frames_.empty()) {
      up.reset(::openat(directory(), "..", O_PATH | O_DIRECTORY | O_CLOEXEC));
      struct stat parent = {};
      if (!up || ::fstat(up.get(), &parent) != 0 || parent.st_dev != frame.device ||
          parent.st_ino != frame.inode) {
        note(file_error(Code::io, "the tree was moved while it was being removed"));
        return false;
      }
    }
    UniqueFd left = std::exchange(held_, std::move(up));
    if (frame.failed) {
      if (!frames_.empty()) frames_.back().failed = true;
      return true;
    }
    if (::unlinkat(directory(), frame.name.c_str(), AT_REMOVEDIR) == 0 || errno == ENOENT)
      return true;
    const int error = errno;
    // New entries came while it was being emptied: once or twice more, not for ever.
    if ((error == ENOTEMPTY || error == EEXIST) && frame.scans < 3) {
      held_ = std::move(left);
      frame.directories.clear();
      frames_.push_back(std::move(frame));
      scan();
      return true;
    }
    note(errno_error(error, "remove directory"));
    if (!frames_.empty()) frames_.back().failed = true;
    return true;
  }

  std::stop_token stop_;
  int current_;    // the directory that holds the tree; not owned
  UniqueFd held_;  // the current directory, within the tree
  std::vector<Frame> frames_;
  std::optional<FileError> error_;
};

}  // namespace

FileResult<void> remove(const std::string& path, std::stop_token stop) {
  if (auto ok = check_path(path); !ok) return ok;
  const std::size_t last = path.find_last_not_of('/');
  if (last == std::string::npos) {
    return file_error(Code::permission_denied, "the root directory can't be removed");
  }
  const std::string trimmed = path.substr(0, last + 1);
  const std::size_t slash = trimmed.rfind('/');
  const std::string name = slash == std::string::npos ? trimmed : trimmed.substr(slash + 1);
  std::string holder = slash == std::string::npos ? "." : trimmed.substr(0, slash);
  if (holder.empty()) holder = "/";
  if (name == "." || name == "..") {
    return file_error(Code::invalid_path, "a path that ends in \".\" or \"..\" can't be removed");
  }
  UniqueFd parent(::open(holder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!parent) return errno_error(errno, "open directory");
  struct stat info = {};
  if (::fstatat(parent.get(), name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) {
    return errno_error(errno, "stat");
  }
  if (is_mount_point(parent.get(), name.c_str())) {
    return file_error(Code::permission_denied, "a mount point can't be removed");
  }
  if (S_ISDIR(info.st_mode)) return TreeRemover(parent.get(), std::move(stop)).run(name);
  if (::unlinkat(parent.get(), name.c_str(), 0) != 0) return errno_error(errno, "remove");
  return {};
}

}  // namespace sandy::files
