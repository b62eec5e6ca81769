// A file being written that has no name yet.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "agent/files/result.h"
#include "base/unique_fd.h"

namespace sandy::files {

// A name for a hidden file that nobody can guess: ".sandy-" and 128 random bits.
std::string hidden_name();

class Spool {
 public:
  // In the directory `directory` (an O_PATH descriptor will do), so that it can be given a name
  // there.
  static FileResult<Spool> in_directory(int directory);
  // Anywhere: an unnamed file in /tmp, or in memory where /tmp takes none.
  static FileResult<Spool> anywhere();

  Spool(Spool&&) noexcept = default;
  Spool& operator=(Spool&& other) noexcept {
    // By exchange: `other` then removes the name that this one had.
    std::swap(fd_, other.fd_);
    std::swap(directory_, other.directory_);
    std::swap(name_, other.name_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~Spool();

  int fd() const { return fd_.get(); }
  std::uint64_t bytes() const { return bytes_; }
  FileResult<void> append(std::string_view bytes);

  // Gives the file the name `name` in `directory`, which must be the one it was made in, in place
  // of what has that name. EBUSY (a mount point) is reported as `io` with `count` = EBUSY and
  // leaves both as they were.
  FileResult<void> publish(int directory, const std::string& name, bool replaces);

 private:
  Spool(UniqueFd fd, int directory, std::string name)
      : fd_(std::move(fd)), directory_(directory), name_(std::move(name)) {}
  FileResult<void> link_hidden(int directory);
  void drop_name();

  UniqueFd fd_;
  int directory_ = -1;  // not owned; where `name_` is
  std::string name_;    // "" while it has none
  std::uint64_t bytes_ = 0;
};

// Writes all of `bytes` at the file position.
FileResult<void> write_full(int fd, std::string_view bytes);

// Appends the first `size` bytes of `from` to `to`, at its file position.
FileResult<void> copy_bytes(int from, int to, std::uint64_t size);

}  // namespace sandy::files
