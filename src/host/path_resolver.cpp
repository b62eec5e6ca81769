#include "host/path_resolver.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <deque>

namespace sandy::host {
namespace {

constexpr int kMaxLinks = 40;

std::deque<std::string> components(std::string_view path) {
  std::deque<std::string> out;
  while (!path.empty()) {
    const auto slash = std::min(path.find('/'), path.size());
    if (slash > 0) out.emplace_back(path.substr(0, slash));
    path.remove_prefix(std::min(slash + 1, path.size()));
  }
  return out;
}

plan::FileType type_of(mode_t mode) {
  if (S_ISDIR(mode)) return plan::FileType::directory;
  return S_ISREG(mode) ? plan::FileType::file : plan::FileType::other;
}

}  // namespace

Result<plan::HostPath> resolve_path(const std::string& path) {
  plan::HostPath out;
  std::deque<std::string> rest = components(path);
  std::string at;  // canonical so far; "" is the root
  plan::FileType type = plan::FileType::directory;
  int links = 0;
  while (!rest.empty()) {
    const std::string name = std::move(rest.front());
    rest.pop_front();
    if (name == ".") continue;
    if (name == "..") {
      at = at.substr(0, at.empty() ? 0 : at.rfind('/'));
      continue;
    }
    const std::string next = at + "/" + name;
    struct stat st{};
    if (type == plan::FileType::missing || ::lstat(next.c_str(), &st) != 0) {
      if (type != plan::FileType::missing && errno != ENOENT && errno != ENOTDIR && errno != EACCES) return fail(printable(path), errno_text(errno));
      type = plan::FileType::missing;
      at = next;
      continue;
    }
    if (!S_ISLNK(st.st_mode)) {
      type = type_of(st.st_mode);
      at = next;
      continue;
    }
    if (++links > kMaxLinks) return fail(printable(path), errno_text(ELOOP));
    std::array<char, PATH_MAX> buffer;
    const ssize_t n = ::readlink(next.c_str(), buffer.data(), buffer.size());
    if (n <= 0 || static_cast<std::size_t>(n) == buffer.size()) return fail(printable(path), errno_text(n < 0 ? errno : ENAMETOOLONG));
    const std::string target(buffer.data(), static_cast<std::size_t>(n));
    out.links.push_back({next, target});
    if (target.starts_with('/')) at.clear();
    const auto more = components(target);
    rest.insert(rest.begin(), more.begin(), more.end());
  }
  out.canonical = at.empty() ? "/" : at;
  out.type = type;
  return out;
}

Result<UniqueFd> open_canonical(const std::string& path) {
  open_how how{};
  how.flags = O_PATH | O_CLOEXEC;
  how.resolve = RESOLVE_NO_SYMLINKS;
  const long fd = ::syscall(SYS_openat2, AT_FDCWD, path.c_str(), &how, sizeof how);
  if (fd < 0) return fail(printable(path), errno == ELOOP ? "became a symbolic link while the sandbox was started" : errno_text(errno));
  return UniqueFd(static_cast<int>(fd));
}

}  // namespace sandy::host
