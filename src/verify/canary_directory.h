// A directory of the caller's with harmless things in it that no sandbox is to reach: a secret, and sockets.
//
// It is locked (flock(2)) by its maker. One that nobody locks is what a killed `sandy verify` has left, and the next one removes it.
#pragma once

#include <string>
#include <utility>

#include "base/error.h"
#include "base/unique_fd.h"

namespace sandy::verify {

inline constexpr char kCanaryPrefix[] = ".sandy-verify-";

class CanaryDirectory {
 public:
  // Below `parent`, which must be writable; with a file "secret" that has this text. `which`: a letter, as several may be in one place.
  static Result<CanaryDirectory> make(const std::string& parent, const std::string& nonce, const std::string& which, const std::string& secret);
  CanaryDirectory(CanaryDirectory&&) = default;
  CanaryDirectory& operator=(CanaryDirectory&& other) noexcept {
    std::swap(parent_, other.parent_);
    std::swap(fd_, other.fd_);
    std::swap(path_, other.path_);
    std::swap(name_, other.name_);
    return *this;
  }
  ~CanaryDirectory() { remove(); }

  const std::string& path() const { return path_; }
  int fd() const { return fd_.get(); }
  bool has(const std::string& name) const;
  std::string content(const std::string& name) const;
  Result<void> add_directory(const std::string& name) const;
  void remove_file(const std::string& name) const;
  void remove();

 private:
  CanaryDirectory() = default;
  UniqueFd parent_, fd_;
  std::string path_, name_;
};

}  // namespace sandy::verify
