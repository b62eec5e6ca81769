// What the tests of file operations share: a directory of their own, and processes with other
// rights.
#pragma once

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

namespace sandy::files {

// A directory that is removed at the end, whatever modes the test left in it.
class TempTree {
 public:
  TempTree() {
    // In memory where there is such a file system: the tests make thousands of directories.
    const char* base = ::access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    std::string pattern = std::string(base) + "/sandy-files-XXXXXX";
    if (::mkdtemp(pattern.data()) == nullptr) std::abort();
    root_ = pattern;
    ::chmod(root_.c_str(), 0777);  // for the tests that give up their rights
  }
  ~TempTree() {
    std::error_code error;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(
             root_, std::filesystem::directory_options::skip_permission_denied, error)) {
      if (entry.is_directory(error) && !entry.is_symlink(error))
        ::chmod(entry.path().c_str(), 0700);
    }
    std::filesystem::remove_all(root_, error);
  }
  TempTree(const TempTree&) = delete;
  TempTree& operator=(const TempTree&) = delete;

  const std::string& root() const { return root_; }
  std::string at(std::string_view name) const { return root_ + "/" + std::string(name); }

  std::string make(std::string_view name, std::string_view content, mode_t mode = 0644) const {
    const std::string path = at(name);
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    std::ofstream(path, std::ios::binary) << content;
    ::chmod(path.c_str(), mode);
    return path;
  }
  std::string make_directory(std::string_view name, mode_t mode = 0755) const {
    std::filesystem::create_directories(at(name));
    ::chmod(at(name).c_str(), mode);
    return at(name);
  }
  std::string link(std::string_view name, const std::string& target) const {
    if (::symlink(target.c_str(), at(name).c_str()) != 0) std::abort();
    return at(name);
  }
  std::string fifo(std::string_view name) const {
    if (::mkfifo(at(name).c_str(), 0666) != 0) std::abort();
    return at(name);
  }
  std::string content(std::string_view name) const { return content_of(at(name)); }
  static std::string content_of(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  bool exists(std::string_view name) const {
    struct stat info = {};
    return ::lstat(at(name).c_str(), &info) == 0;
  }
  mode_t mode(std::string_view name) const {
    struct stat info = {};
    return ::stat(at(name).c_str(), &info) == 0 ? info.st_mode & 07777 : 0;
  }
  ino_t inode(std::string_view name) const {
    struct stat info = {};
    return ::lstat(at(name).c_str(), &info) == 0 ? info.st_ino : 0;
  }
  // Every name in the tree's top directory, sorted: shows what was left behind.
  std::vector<std::string> names(std::string_view directory = ".") const {
    std::vector<std::string> out;
    for (const auto& entry : std::filesystem::directory_iterator(at(directory))) {
      out.push_back(entry.path().filename());
    }
    std::sort(out.begin(), out.end());
    return out;
  }

 private:
  std::string root_;
};

// Runs `body` in a child process; what it returns, or how it died.
inline std::string in_child(const std::function<std::string()>& body) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return "pipe failed";
  const pid_t child = ::fork();
  if (child < 0) return "fork failed";
  if (child == 0) {
    ::close(ends[0]);
    const std::string text = body();
    const ssize_t done = ::write(ends[1], text.data(), text.size());
    ::_exit(done == static_cast<ssize_t>(text.size()) ? 0 : 1);
  }
  ::close(ends[1]);
  std::string text;
  char buffer[4096];
  for (ssize_t got; (got = ::read(ends[0], buffer, sizeof buffer)) > 0;) {
    text.append(buffer, static_cast<std::size_t>(got));
  }
  ::close(ends[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  return status == 0 ? text : "the child ended with status " + std::to_string(status);
}

// As in_child, without root's rights where the test runs as root.
inline std::string unprivileged(const std::function<std::string()>& body) {
  return in_child([&]() -> std::string {
    if (::geteuid() == 0 &&
        (::setresgid(65534, 65534, 65534) != 0 || ::setresuid(65534, 65534, 65534) != 0)) {
      return "setresuid failed";
    }
    return body();
  });
}

inline constexpr std::string_view kNoNamespace = "no namespace: ";

// As in_child, in a mount namespace of its own, with the right to mount. Where the machine gives
// none, the result starts with kNoNamespace and says why.
inline std::string with_mounts(const std::function<std::string()>& body) {
  return in_child([&]() -> std::string {
    const std::string uid = std::to_string(::geteuid());
    const std::string gid = std::to_string(::getegid());
    if (::unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) {
      return std::string(kNoNamespace) + std::strerror(errno);
    }
    std::ofstream("/proc/self/setgroups") << "deny";
    std::ofstream("/proc/self/uid_map") << uid << ' ' << uid << " 1";
    std::ofstream("/proc/self/gid_map") << gid << ' ' << gid << " 1";
    if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) {
      return std::string(kNoNamespace) + std::strerror(errno);
    }
    return body();
  });
}

}  // namespace sandy::files
