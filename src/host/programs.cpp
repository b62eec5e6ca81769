#include "host/programs.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "base/memfd.h"
#include "base/unique_fd.h"
#include "host/run_program.h"
#include "host/state_directory.h"

namespace sandy::host {
namespace {

using namespace std::chrono_literals;

// Only root and we can change what is in it: whoever else could, could put a program of theirs there.
bool is_trusted_directory(const std::string& path) {
  struct stat st{};
  if (!path.starts_with('/') || ::stat(path.c_str(), &st) != 0 || !S_ISDIR(st.st_mode)) return false;
  if (st.st_uid != 0 && st.st_uid != ::geteuid()) return false;
  return (st.st_mode & 022) == 0;
}

bool is_executable(const std::string& path) {
  struct stat st{};
  return ::stat(path.c_str(), &st) == 0 && S_ISREG(st.st_mode) && ::access(path.c_str(), X_OK) == 0;
}

std::string own_directory() {
  std::array<char, PATH_MAX> buffer;
  const ssize_t n = ::readlink("/proc/self/exe", buffer.data(), buffer.size());
  const std::string_view path(buffer.data(), n > 0 ? static_cast<std::size_t>(n) : 0);
  return std::string(path.substr(0, path.rfind('/')));
}

// Identifies a file's content well enough: replacing it changes the inode or the times.
std::string identity(const std::string& path) {
  struct stat st{};
  if (::stat(path.c_str(), &st) != 0) return {};
  std::string out = "bwrap";
  for (const long part : {static_cast<long>(st.st_dev), static_cast<long>(st.st_ino), static_cast<long>(st.st_size), st.st_mtim.tv_sec,
                          st.st_mtim.tv_nsec, st.st_ctim.tv_sec, st.st_ctim.tv_nsec}) {
    out += "-" + std::to_string(part);
  }
  return out;
}

std::set<std::string> option_words(std::string_view help) {
  std::set<std::string> out;
  for (std::size_t at = help.find("--"); at != std::string_view::npos; at = help.find("--", at)) {
    std::size_t end = at + 2;
    while (end < help.size() && (std::isalnum(static_cast<unsigned char>(help[end])) != 0 || help[end] == '-')) ++end;
    if (end > at + 2) out.emplace(help.substr(at, end - at));
    at = end;
  }
  return out;
}

Result<std::string> cached_help(const std::string& path) {
  auto state = StateDirectory::open();
  const std::string name = identity(path);
  if (state) {
    const UniqueFd cached(::openat(state->fd(), name.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
    if (cached) {
      std::string text(65'536, '\0');
      const ssize_t n = ::read(cached.get(), text.data(), text.size());
      if (n > 0) return text.substr(0, static_cast<std::size_t>(n));
    }
  }
  auto help = run_program({path, "--help"}, 5s);
  if (!help) return std::unexpected(help.error());
  if (help->timed_out) return fail(printable(path), "did not answer --help within 5 s");
  if (!WIFEXITED(help->status) || WEXITSTATUS(help->status) != 0 || help->out.find("--unshare-user") == std::string::npos) {
    return fail(printable(path), "is no bubblewrap: its --help is not one's" + (help->err.empty() ? "" : " (" + printable(help->err.substr(0, 200)) + ")"));
  }
  if (state) {
    const std::string temporary = name + "." + std::to_string(::getpid());
    const UniqueFd fd(::openat(state->fd(), temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (fd && write_all(fd.get(), help->out)) ::renameat(state->fd(), temporary.c_str(), state->fd(), name.c_str());
  }
  return help->out;
}

}  // namespace

Result<std::string> own_program(const std::string& name) {
  const std::string here = own_directory();
  std::string looked;
  for (const auto& directory : {here, here + "/../libexec/sandy"}) {
    const std::string path = directory + "/" + name;
    if (is_executable(path)) return path;
    looked += (looked.empty() ? "" : ", ") + printable(path);
  }
  return fail(name, "not found; looked at " + looked, "install Sandy again, all of its programs in one place");
}

Result<Bubblewrap> find_bubblewrap() {
  std::vector<std::string> places;
  std::string looked;
  if (const char* own = std::getenv("SANDY_BWRAP"); own != nullptr && *own != '\0') {
    if (own[0] != '/' || !is_executable(own)) return fail("SANDY_BWRAP=" + printable(own), "is no absolute path of a program");
    places.emplace_back(own);
  } else {
    std::string_view path = std::getenv("PATH") == nullptr ? "" : std::getenv("PATH");
    std::vector<std::string> directories;
    while (!path.empty()) {
      const auto colon = std::min(path.find(':'), path.size());
      directories.emplace_back(path.substr(0, colon));
      path.remove_prefix(std::min(colon + 1, path.size()));
    }
    for (const char* usual : {"/usr/bin", "/usr/local/bin", "/bin"}) directories.emplace_back(usual);
    for (const auto& directory : directories) {
      const std::string candidate = directory + "/bwrap";
      if (!is_executable(candidate)) continue;
      if (is_trusted_directory(directory)) {
        places.push_back(candidate);
        break;
      }
      looked += "; " + printable(directory) + " was passed over, because others can write to it or it is relative";
    }
  }
  if (places.empty()) {
    return fail("bubblewrap", "no program bwrap in PATH, /usr/bin, /usr/local/bin or /bin" + looked,
                "install it: apt install bubblewrap (or dnf, pacman, zypper: the package has the same name)");
  }
  auto help = cached_help(places.front());
  if (!help) return std::unexpected(help.error());
  Bubblewrap out;
  out.path = places.front();
  out.options = option_words(*help);
  return out;
}

}  // namespace sandy::host
