#include "agent/workspace_names.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "agent/files/remove.h"

namespace sandy::agent {
namespace {

constexpr std::uint32_t kEvents = IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_ONLYDIR;

std::string join(const std::string& directory, std::string_view name) {
  return (directory == "/" ? std::string("/") : directory + "/").append(name);
}

void list_names(const std::string& directory, std::set<std::string>& out) {
  DIR* stream = ::opendir(directory.c_str());
  if (stream == nullptr) return;
  while (const dirent* entry = ::readdir(stream)) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") out.emplace(name);
  }
  ::closedir(stream);
}

std::uint64_t mount_of(const std::string& path) {
  struct statx info{};
  return ::statx(AT_FDCWD, path.c_str(), AT_SYMLINK_NOFOLLOW, STATX_MNT_ID, &info) == 0 ? info.stx_mnt_id : 0;
}

}  // namespace

WorkspaceNames::WorkspaceNames(std::string root, std::string workspace, std::set<std::string, std::less<>> root_names)
    : root_(std::move(root)), workspace_(std::move(workspace)), root_names_(std::move(root_names)) {
  own_name_ = workspace_.substr(workspace_.rfind('/') + 1);
  one_mount_ = mount_of(root_) == mount_of(workspace_);
  inotify_.reset(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  if (inotify_ && (::inotify_add_watch(inotify_.get(), root_.c_str(), kEvents) < 0 ||
                   ::inotify_add_watch(inotify_.get(), workspace_.c_str(), kEvents) < 0)) {
    inotify_.reset();
  }
  scan(true);
}

bool WorkspaceNames::is_system(std::string_view name) const { return name == own_name_ || root_names_.contains(name); }

void WorkspaceNames::scan(bool at_rest) {
  std::set<std::string> names;
  list_names(root_, names);
  list_names(workspace_, names);
  if (names.size() > kMaxNames) return;
  for (const auto& name : names) reconcile(name, at_rest);
}

void WorkspaceNames::sync(bool at_rest) {
  budget_ = {};
  if (!inotify_) return scan(at_rest);
  // Our own changes make events too; reconciling a name that agrees does nothing.
  std::set<std::string> changed;
  if (at_rest) changed.swap(waiting_);
  bool overflow = false;
  alignas(inotify_event) std::array<char, 4096> buffer;
  while (true) {
    const ssize_t n = ::read(inotify_.get(), buffer.data(), buffer.size());
    if (n <= 0) break;
    for (ssize_t at = 0; at < n;) {
      inotify_event event;
      std::memcpy(&event, buffer.data() + at, sizeof event);
      if ((event.mask & IN_Q_OVERFLOW) != 0) overflow = true;
      if (event.len > 0) changed.emplace(buffer.data() + at + sizeof event);
      at += static_cast<ssize_t>(sizeof event + event.len);
    }
  }
  if (overflow) return scan(at_rest);
  for (const auto& name : changed) reconcile(name, at_rest);
}

// Under a name of its own first: the workspace never has a part of it under the real one.
bool WorkspaceNames::copy_in(const std::string& name) {
  const std::string temporary = join(workspace_, ".sandy-moving-" + std::to_string(::getpid()));
  if (copy_tree(join(root_, name), temporary, budget_) && ::rename(temporary.c_str(), join(workspace_, name).c_str()) == 0) return true;
  (void)files::remove(temporary);
  return false;
}

void WorkspaceNames::reconcile(const std::string& name, bool at_rest) {
  if (is_system(name)) return;
  const std::string top = join(root_, name), inner = join(workspace_, name);
  struct stat at_top{}, at_inner{};
  const bool has_top = ::lstat(top.c_str(), &at_top) == 0;
  const bool has_inner = ::lstat(inner.c_str(), &at_inner) == 0;
  if (!has_top) {
    if (has_inner) (void)!::symlink(inner.c_str(), top.c_str());
    return;
  }
  if (S_ISLNK(at_top.st_mode)) {
    std::array<char, PATH_MAX> target;
    const ssize_t n = ::readlink(top.c_str(), target.data(), target.size());
    if (n > 0 && std::string_view(target.data(), static_cast<std::size_t>(n)) == inner) {
      if (!has_inner) ::unlink(top.c_str());
      return;
    }
  }
  // An entry that a command made in `/`.
  const bool newer_file = has_inner && !S_ISDIR(at_top.st_mode) && !S_ISDIR(at_inner.st_mode);  // saved over the link, by a temporary file that was renamed
  if (has_inner && !newer_file) return;
  if (!one_mount_) {
    if (!at_rest) {
      waiting_.insert(name);
    } else if (copy_in(name) && files::remove(top)) {
      (void)!::symlink(inner.c_str(), top.c_str());
    }
    return;
  }
  // Open files and working directories go along with a rename.
  if (!has_inner) {
    // Exchanging it with the link leaves no moment at which the name is missing.
    if (::symlink(inner.c_str(), inner.c_str()) != 0) return;
    if (::renameat2(AT_FDCWD, top.c_str(), AT_FDCWD, inner.c_str(), RENAME_EXCHANGE) != 0) ::unlink(inner.c_str());
  } else {
    if (::rename(top.c_str(), inner.c_str()) == 0) (void)!::symlink(inner.c_str(), top.c_str());
  }
}

std::string WorkspaceNames::locate(const std::string& mapped) const {
  const std::string prefix = workspace_ + "/";
  if (!mapped.starts_with(prefix)) return mapped;
  const std::string_view rest = std::string_view(mapped).substr(prefix.size());
  const std::string_view first = rest.substr(0, rest.find('/'));
  if (first.empty() || is_system(first)) return mapped;
  struct stat st{};
  if (::lstat(join(workspace_, first).c_str(), &st) == 0 || ::lstat(join(root_, first).c_str(), &st) != 0) return mapped;
  return join(root_, rest);
}

}  // namespace sandy::agent
