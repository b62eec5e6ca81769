// What the tests of host/ share: a directory of their own, children with other rights, and variables set for a while.
#pragma once

#include <dirent.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <string>

namespace sandy::host {

// Removed at the end with what can be removed. Its own path has no links.
class TestDirectory {
 public:
  explicit TestDirectory(const char* base = "/tmp") {
    std::string pattern = std::filesystem::canonical(base).string() + "/sandy-host-XXXXXX";
    if (::mkdtemp(pattern.data()) == nullptr) std::abort();
    path_ = pattern;
    ::chmod(path_.c_str(), 0777);  // for children that give up their rights
    fd_ = ::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  }
  ~TestDirectory() {
    ::close(fd_);
    std::error_code error;
    std::filesystem::remove_all(path_, error);
  }
  TestDirectory(const TestDirectory&) = delete;
  TestDirectory& operator=(const TestDirectory&) = delete;

  const std::string& path() const { return path_; }
  int fd() const { return fd_; }
  std::string at(const std::string& name) const { return path_ + "/" + name; }
  std::string make_directory(const std::string& name, mode_t mode = 0755) const {
    std::filesystem::create_directories(at(name));
    ::chmod(at(name).c_str(), mode);
    return at(name);
  }
  std::string make(const std::string& name, const std::string& content, mode_t mode = 0644) const {
    std::filesystem::create_directories(std::filesystem::path(at(name)).parent_path());
    std::ofstream(at(name), std::ios::binary) << content;
    ::chmod(at(name).c_str(), mode);
    return at(name);
  }
  std::string link(const std::string& name, const std::string& target) const {
    if (::symlink(target.c_str(), at(name).c_str()) != 0) std::abort();
    return at(name);
  }
  bool exists(const std::string& name) const {
    struct stat st{};
    return ::lstat(at(name).c_str(), &st) == 0;
  }

 private:
  std::string path_;
  int fd_ = -1;
};

inline std::string content_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// Runs `body` in a child process, as an ordinary user where the test runs as root. "" means success.
inline std::string unprivileged(const std::function<std::string()>& body) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return "pipe failed";
  const pid_t child = ::fork();
  if (child < 0) return "fork failed";
  if (child == 0) {
    ::close(ends[0]);
    std::string text = "can't give up root's rights";
    if (::geteuid() != 0 || (::setresgid(65534, 65534, 65534) == 0 && ::setresuid(65534, 65534, 65534) == 0)) text = body();
    (void)!::write(ends[1], text.data(), text.size());
    ::_exit(0);
  }
  ::close(ends[1]);
  std::string text;
  char buffer[4096];
  for (ssize_t n; (n = ::read(ends[0], buffer, sizeof buffer)) > 0;) text.append(buffer, static_cast<std::size_t>(n));
  ::close(ends[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  return status == 0 ? text : "the child ended with status " + std::to_string(status) + ": " + text;
}

// Environment variables for the life of this object; nullopt unsets.
class WithEnvironment {
 public:
  WithEnvironment(std::initializer_list<std::pair<std::string, std::optional<std::string>>> values) {
    for (const auto& [name, value] : values) {
      const char* old = std::getenv(name.c_str());
      old_[name] = old != nullptr ? std::optional<std::string>(old) : std::nullopt;
      set(name, value);
    }
  }
  ~WithEnvironment() {
    for (const auto& [name, value] : old_) set(name, value);
  }
  WithEnvironment(const WithEnvironment&) = delete;
  WithEnvironment& operator=(const WithEnvironment&) = delete;

 private:
  static void set(const std::string& name, const std::optional<std::string>& value) {
    if (value) ::setenv(name.c_str(), value->c_str(), 1);
    else ::unsetenv(name.c_str());
  }
  std::map<std::string, std::optional<std::string>> old_;
};

}  // namespace sandy::host
