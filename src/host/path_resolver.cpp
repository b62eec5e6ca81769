#include "host/path_resolver.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "plan/path_text.h"

namespace sandy::host {
namespace {

constexpr int kMaxLinks = 40;

plan::FileType type_of(mode_t mode) {
  if (S_ISDIR(mode)) return plan::FileType::directory;
  if (S_ISSOCK(mode)) return plan::FileType::socket;
  return S_ISREG(mode) ? plan::FileType::file : plan::FileType::other;
}

}  // namespace

Result<plan::HostPath> resolve_path(const std::string& path) {
  plan::HostPath out;
  auto rest = plan::components(path);
  std::string at;  // canonical so far; "" is the root
  plan::FileType type = plan::FileType::directory;
  int links = 0;
  while (!rest.empty()) {
    const std::string name = std::move(rest.front());
    rest.pop_front();
    if (name == ".") continue;
    if (name == "..") {
      if (at.empty()) continue;
      // The kernel asks this of a directory, and one that can be entered (path_resolution(7)). Taken by its text, a name behind another one that
      // is not there would mean something here, and nothing there.
      struct stat st{};
      const int error = type == plan::FileType::missing ? ENOENT : ::lstat((at + "/..").c_str(), &st) == 0 ? 0 : errno;
      if (error != 0) {
        return fail(printable(path), "\"..\" stands behind \"" + printable(at) + "\": " + errno_text(error), "name it without \"..\", by where it is");
      }
      out.passed.push_back(at);
      at = at.substr(0, at.rfind('/'));
      type = plan::FileType::directory;
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
    const auto more = plan::components(target);
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
