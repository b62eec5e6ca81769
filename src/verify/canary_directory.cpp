#include "verify/canary_directory.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

#include "base/memfd.h"
#include "host/remove_tree.h"

namespace sandy::verify {
namespace {

constexpr time_t kYoung = 10;  // seconds: it may not be locked yet

void sweep(int parent) {
  DIR* const stream = ::fdopendir(::openat(parent, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (stream == nullptr) return;
  std::vector<std::string> names;
  while (const dirent* entry = ::readdir(stream)) {
    if (std::string_view(entry->d_name).starts_with(kCanaryPrefix)) names.emplace_back(entry->d_name);
  }
  ::closedir(stream);
  for (const auto& name : names) {
    const UniqueFd fd(::openat(parent, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    struct stat st{};
    if (!fd || ::fstat(fd.get(), &st) != 0 || st.st_uid != ::geteuid() || st.st_mtim.tv_sec > ::time(nullptr) - kYoung) continue;
    if (::flock(fd.get(), LOCK_EX | LOCK_NB) == 0) (void)host::remove_tree(parent, name);
  }
}

}  // namespace

Result<CanaryDirectory> CanaryDirectory::make(const std::string& parent, const std::string& nonce, const std::string& which, const std::string& secret) {
  CanaryDirectory out;
  // Short, since a socket's name has room for 108 bytes.
  out.name_ = kCanaryPrefix + nonce.substr(0, 8) + which;
  out.path_ = (parent == "/" ? "" : parent) + "/" + out.name_;
  out.parent_ = UniqueFd(::open(parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!out.parent_) return fail(printable(parent), errno_text(errno));
  sweep(out.parent_.get());
  if (::mkdirat(out.parent_.get(), out.name_.c_str(), 0700) != 0) {
    out.parent_.reset();
    return fail(printable(parent), "can't be written to: " + errno_text(errno));
  }
  out.fd_ = UniqueFd(::openat(out.parent_.get(), out.name_.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!out.fd_ || ::flock(out.fd_.get(), LOCK_EX | LOCK_NB) != 0) return fail(printable(out.path_), errno_text(errno));
  const UniqueFd file(::openat(out.fd_.get(), "secret", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!file || !write_all(file.get(), secret)) return fail(printable(out.path_) + "/secret", errno_text(errno));
  return out;
}

bool CanaryDirectory::has(const std::string& name) const {
  struct stat st{};
  return ::fstatat(fd_.get(), name.c_str(), &st, AT_SYMLINK_NOFOLLOW) == 0;
}

std::string CanaryDirectory::content(const std::string& name) const {
  const UniqueFd file(::openat(fd_.get(), name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  std::string text(256, '\0');
  const ssize_t size = file ? ::read(file.get(), text.data(), text.size()) : -1;
  text.resize(size > 0 ? static_cast<std::size_t>(size) : 0);
  return text;
}

Result<void> CanaryDirectory::add_directory(const std::string& name) const {
  if (::mkdirat(fd_.get(), name.c_str(), 0700) != 0) return fail(printable(path_ + "/" + name), errno_text(errno));
  return {};
}

void CanaryDirectory::remove_file(const std::string& name) const { ::unlinkat(fd_.get(), name.c_str(), 0); }

void CanaryDirectory::remove() {
  if (!parent_) return;
  (void)host::remove_tree(parent_.get(), name_);
  parent_.reset();
}

}  // namespace sandy::verify
