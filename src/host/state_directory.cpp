#include "host/state_directory.h"

#include <dirent.h>
#include <fcntl.h>
#include <pwd.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

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

std::vector<std::string> candidates() {
  std::vector<std::string> out;
  if (const char* state = std::getenv("XDG_STATE_HOME"); state != nullptr && state[0] == '/') out.push_back(std::string(state) + "/sandy");
  if (const char* home = std::getenv("HOME"); home != nullptr && home[0] == '/' && home[1] != '\0') {
    out.push_back(std::string(home) + "/.local/state/sandy");
  }
  out.push_back("/var/tmp/sandy-" + std::to_string(::geteuid()));
  return out;
}

// Opens `path`, which is made, 0700, with its parents, where it is missing; only if it is ours and nobody else can write to it.
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

}  // namespace

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

void StateDirectory::sweep() {
  DIR* stream = ::fdopendir(::openat(fd_.get(), ".", kDirectory));
  if (stream == nullptr) return;
  std::vector<std::string> names;
  while (const dirent* entry = ::readdir(stream)) {
    if (std::string_view(entry->d_name).starts_with(kPrefix)) names.emplace_back(entry->d_name);
  }
  ::closedir(stream);
  for (const auto& name : names) {
    const UniqueFd fd(::openat(fd_.get(), name.c_str(), kDirectory));
    if (!fd) continue;
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
  if (!out.fd_ || ::flock(out.fd_.get(), LOCK_EX | LOCK_NB) != 0) return fail(what, errno_text(errno));
  const UniqueFd ready(::openat(out.fd_.get(), "ready", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!ready) return fail(what, errno_text(errno));
  return out;
}

SandboxDirectory::~SandboxDirectory() {
  if (parent_) (void)remove_tree(parent_.get(), name_);
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
