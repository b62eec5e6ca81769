// One directory of cgroup v2's file system, and the files in it.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"
#include "base/unique_fd.h"

namespace sandy::cgroup {

inline constexpr const char* kMount = "/sys/fs/cgroup";

class Directory {
 public:
  Directory() = default;
  static Result<Directory> open(const std::string& path);  // absolute, below kMount
  // One below this one, made where it is missing. make(): without processes, also where it was there.
  Result<Directory> below(const std::string& name) const;
  Result<Directory> make(const std::string& name) const;

  explicit operator bool() const { return static_cast<bool>(fd_); }
  const std::string& path() const { return path_; }

  // At most 4 MiB, which all processes of a machine fit in; "" where it isn't there.
  std::string read(const char* file) const;
  // For read_again().
  Result<UniqueFd> open_file(const char* file) const;
  // The whole text by one write(2), as cgroupfs wants it.
  Result<void> write(const char* file, std::string_view text) const;
  bool has(const char* file) const;

  // Moves a process (with all its threads) here.
  Result<void> add(int pid) const;
  // Whether it or one below it has a process that lives.
  bool populated() const;
  // Kills everything in it and below: at once by cgroup.kill (Linux 5.14), before that frozen and then one by one.
  void kill() const;
  // Removes one below this one, which has to be empty. False: it is not, or not yet.
  bool remove(const std::string& name) const;

 private:
  Result<Directory> enter(const std::string& name) const;
  Directory(std::string path, UniqueFd fd) : path_(std::move(path)), fd_(std::move(fd)) {}

  std::string path_;
  UniqueFd fd_;
};

// What a short file says now that open_file() has opened.
std::string read_again(const UniqueFd& file);

}  // namespace sandy::cgroup
