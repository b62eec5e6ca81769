#include "host/state_directory.h"

#include <dirent.h>
#include <fcntl.h>
#include <pwd.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "host/remove_tree.h"

namespace sandy::host {
namespace {

constexpr int kDirectory = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
constexpr std::string_view kPrefix = "sandbox-";
constexpr const char* kRecord = "kept";
constexpr off_t kMaxRecord = 4 << 20;
constexpr int kLockTries = 20;                       // somebody who looks whether it runs has a lock for a moment
constexpr timespec kLockPause{0, 10'000'000};

std::vector<std::string> candidates() {
  std::vector<std::string> out;
  if (const char* state = std::getenv("XDG_STATE_HOME"); state != nullptr && state[0] == '/') out.push_back(std::string(state) + "/sandy");
  if (const char* home = std::getenv("HOME"); home != nullptr && home[0] == '/' && home[1] != '\0') {
    out.push_back(std::string(home) + "/.local/state/sandy");
  }
  out.push_back("/var/tmp/sandy-" + std::to_string(::geteuid()));
  return out;
}

}  // namespace

Result<UniqueFd> open_private(const std::string& path) {
  UniqueFd fd(::open(path.c_str(), kDirectory));
  if (!fd && errno == ENOENT) {
    for (std::size_t slash = path.find('/', 1);; slash = path.find('/', slash + 1)) {
      const std::string prefix = path.substr(0, slash);
      if (::mkdir(prefix.c_str(), 0700) != 0 && errno != EEXIST && slash == std::string::npos) return fail(printable(path), errno_text(errno));
      if (slash == std::string::npos) break;
    }
  }
  struct stat st{};
  // Made under an odd umask, by us or by mkdir -p, it may shut out even its owner.
  if ((fd ? ::fstat(fd.get(), &st) : ::lstat(path.c_str(), &st)) == 0 && S_ISDIR(st.st_mode) && st.st_uid == ::geteuid() && (st.st_mode & 0700) != 0700) {
    (void)!::fchmodat(AT_FDCWD, path.c_str(), 0700, AT_SYMLINK_NOFOLLOW);
  }
  if (!fd) fd.reset(::open(path.c_str(), kDirectory));
  if (!fd || ::fstat(fd.get(), &st) != 0) return fail(printable(path), errno_text(errno));
  if (st.st_uid != ::geteuid()) return fail(printable(path), "belongs to another user");
  if ((st.st_mode & 077) != 0 && ::fchmod(fd.get(), 0700) != 0) return fail(printable(path), "others may enter it");
  if (::faccessat(fd.get(), ".", W_OK | X_OK, AT_EACCESS) != 0) return fail(printable(path), errno_text(errno));
  return fd;
}

std::string StateDirectory::likely_path() { return candidates().front(); }

Result<StateDirectory> StateDirectory::open() {
  std::string tried;
  for (const auto& path : candidates()) {
    auto fd = open_private(path);
    if (fd) {
      StateDirectory out;
      out.path_ = path;
      out.fd_ = std::move(*fd);
      return out;
    }
    tried += (tried.empty() ? "" : "; ") + fd.error().text();
  }
  return fail("state directory", "no place for it: " + tried, "set XDG_STATE_HOME to a directory that you can write to");
}

namespace {

std::vector<std::string> names_in(int directory, std::string_view prefix) {
  std::vector<std::string> names;
  DIR* stream = ::fdopendir(::openat(directory, ".", kDirectory));
  if (stream == nullptr) return names;
  while (const dirent* entry = ::readdir(stream)) {
    const std::string_view name = entry->d_name;
    if (name.starts_with(prefix) && name != "." && name != "..") names.emplace_back(name);
  }
  ::closedir(stream);
  return names;
}

std::string read_record(int directory) {
  const UniqueFd fd(::openat(directory, kRecord, O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
  struct stat st{};
  if (!fd || ::fstat(fd.get(), &st) != 0 || !S_ISREG(st.st_mode) || st.st_size > kMaxRecord) return {};
  std::string text(static_cast<std::size_t>(st.st_size), '\0');
  const ssize_t n = ::read(fd.get(), text.data(), text.size());
  text.resize(n < 0 ? 0 : static_cast<std::size_t>(n));
  return text;
}

bool lock(int fd) {
  for (int tries = 0; ::flock(fd, LOCK_EX | LOCK_NB) != 0; ++tries) {
    if (tries == kLockTries) return false;
    ::nanosleep(&kLockPause, nullptr);
  }
  return true;
}

}  // namespace

std::vector<StateDirectory::Kept> StateDirectory::kept() const {
  std::vector<Kept> out;
  for (const auto& name : names_in(fd_.get(), kPrefix)) {
    const UniqueFd fd(::openat(fd_.get(), name.c_str(), kDirectory));
    if (!fd) continue;
    if (::faccessat(fd.get(), kRecord, F_OK, 0) != 0) continue;
    const bool running = ::flock(fd.get(), LOCK_SH | LOCK_NB) != 0;
    out.push_back({name.substr(kPrefix.size()), read_record(fd.get()), running});
  }
  std::ranges::sort(out, {}, &Kept::id);
  return out;
}

Result<void> StateDirectory::remove_kept(const std::string& id) const {
  const std::string name = std::string(kPrefix) + id;
  const UniqueFd fd(::openat(fd_.get(), name.c_str(), kDirectory));
  if (!fd) return fail(printable(id), errno_text(errno));
  if (!lock(fd.get())) return fail(printable(id), "the sandbox runs", "stop it first");
  if (!remove_tree(fd_.get(), name)) return fail(printable(path_ + "/" + name), "could not be removed whole");
  return {};
}

Result<UniqueFd> StateDirectory::lock_kept(bool waits) const {
  UniqueFd fd(::openat(fd_.get(), "kept.lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!fd || ::flock(fd.get(), waits ? LOCK_EX : LOCK_EX | LOCK_NB) != 0) return fail(printable(path_ + "/kept.lock"), errno_text(errno));
  return fd;
}

void StateDirectory::sweep() {
  for (const auto& name : names_in(fd_.get(), kPrefix)) {
    const UniqueFd fd(::openat(fd_.get(), name.c_str(), kDirectory));
    if (!fd || ::faccessat(fd.get(), kRecord, F_OK, 0) == 0) continue;
    if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) continue;  // alive
    // Its maker locks it right after mkdir; one that is this young may be between the two.
    struct stat st{};
    if (::fstat(fd.get(), &st) == 0 && st.st_nlink > 0 && ::faccessat(fd.get(), "ready", F_OK, 0) != 0 && ::time(nullptr) - st.st_mtime < 5) continue;
    (void)remove_tree(fd_.get(), name);
  }
}

Result<SandboxDirectory> SandboxDirectory::make(const StateDirectory& state, const std::string& id,
                                                std::optional<std::pair<std::uint32_t, std::uint32_t>> owner) {
  SandboxDirectory out;
  out.name_ = std::string(kPrefix) + id;
  out.path_ = state.path() + "/" + out.name_;
  out.owner_ = owner;
  const std::string what = "state directory " + printable(out.path_);
  UniqueFd parent(::fcntl(state.fd(), F_DUPFD_CLOEXEC, 3));
  if (!parent) return fail(what, errno_text(errno));
  if (::mkdirat(parent.get(), out.name_.c_str(), 0700) != 0) return fail(what, errno_text(errno));
  out.parent_ = std::move(parent);
  out.fd_.reset(::openat(out.parent_.get(), out.name_.c_str(), kDirectory));
  // A sweep may have it for a moment.
  if (!out.fd_ || !lock(out.fd_.get())) return fail(what, errno_text(errno));
  const UniqueFd ready(::openat(out.fd_.get(), "ready", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!ready) return fail(what, errno_text(errno));
  return out;
}

Result<SandboxDirectory> SandboxDirectory::adopt(const StateDirectory& state, const std::string& id,
                                                 std::optional<std::pair<std::uint32_t, std::uint32_t>> owner) {
  SandboxDirectory out;
  out.name_ = std::string(kPrefix) + id;
  out.path_ = state.path() + "/" + out.name_;
  out.owner_ = owner;
  out.kept_ = true;
  const std::string what = "sandbox " + printable(id);
  UniqueFd parent(::fcntl(state.fd(), F_DUPFD_CLOEXEC, 3));
  if (!parent) return fail(what, errno_text(errno));
  out.fd_.reset(::openat(parent.get(), out.name_.c_str(), kDirectory));
  if (out.fd_ && !lock(out.fd_.get())) return fail(what, "it runs already", "attach to it");
  // Looked at under the lock: somebody may have been removing it.
  if (!out.fd_ || ::faccessat(out.fd_.get(), kRecord, F_OK, 0) != 0) return fail(what, "no sandbox of this id was kept", "sandy ps --all lists them");
  out.parent_ = std::move(parent);
  return out;
}

SandboxDirectory::~SandboxDirectory() {
  if (parent_ && !kept_) (void)remove_tree(parent_.get(), name_);
}

Result<void> SandboxDirectory::leave_only(const std::string& name, std::string_view path) {
  UniqueFd directory(::openat(fd_.get(), name.c_str(), kDirectory));
  if (!directory && errno == ENOENT) return {};
  if (!directory) return fail("state directory " + printable(path_ + "/" + name), errno_text(errno));
  path.remove_prefix(std::min(path.find_first_not_of('/'), path.size()));
  std::string first(path.substr(0, path.find('/')));
  UniqueFd here(::fcntl(directory.get(), F_DUPFD_CLOEXEC, 3));
  while (!path.empty() && here) {
    const std::string component(path.substr(0, path.find('/')));
    path.remove_prefix(std::min(component.size() + 1, path.size()));
    here.reset(::openat(here.get(), component.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  }
  if (!here) first.clear();
  for (const auto& entry : names_in(directory.get(), {})) {
    if (entry == first) continue;
    if (auto removed = remove_tree(directory.get(), entry); !removed) return removed;
  }
  return {};
}

Result<void> SandboxDirectory::keep(const std::string& record) {
  const std::string what = "state directory " + printable(path_ + "/" + kRecord);
  // Whole or not at all: a record's part would be none.
  const UniqueFd fd(::openat(fd_.get(), "kept.new", O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!fd) return fail(what, errno_text(errno));
  for (std::string_view rest = record; !rest.empty();) {
    const ssize_t n = ::write(fd.get(), rest.data(), rest.size());
    if (n < 0 && errno != EINTR) return fail(what, errno_text(errno));
    if (n > 0) rest.remove_prefix(static_cast<std::size_t>(n));
  }
  if (::renameat(fd_.get(), "kept.new", fd_.get(), kRecord) != 0) return fail(what, errno_text(errno));
  kept_ = true;
  return {};
}

Result<UniqueFd> SandboxDirectory::directory(const std::string& name) {
  const std::string what = "state directory " + printable(path_ + "/" + name);
  if (::mkdirat(fd_.get(), name.c_str(), 0755) != 0 && errno != EEXIST) return fail(what, errno_text(errno));
  UniqueFd fd(::openat(fd_.get(), name.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!fd) return fail(what, errno_text(errno));
  if (owner_ && ::fchownat(fd.get(), "", owner_->first, owner_->second, AT_EMPTY_PATH) != 0) return fail(what, errno_text(errno));
  return fd;
}

}  // namespace sandy::host
