// Where sandboxes keep what must be on a disk: a directory of the user's, with one directory a sandbox.
//
// A sandbox's directory belongs to it while it holds a lock on it (flock(2)), which the kernel drops when its holder dies, however it dies. So a
// directory that can be locked is a left-over, and the next start removes it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/unique_fd.h"

namespace sandy::host {

class StateDirectory {
 public:
  // $XDG_STATE_HOME/sandy, ~/.local/state/sandy, or /var/tmp/sandy-UID: the first that is ours (owner, mode 0700) or can be made.
  static Result<StateDirectory> open();
  // The path that open() would use, without making it: for policy::Caller.
  static std::string likely_path();

  const std::string& path() const { return path_; }
  int fd() const { return fd_.get(); }

  // Removes the directories of sandboxes that are gone. Errors are for the next time.
  void sweep();

 private:
  std::string path_;
  UniqueFd fd_;
};

// One sandbox's directory; removed, with its content, when this is destroyed.
class SandboxDirectory {
 public:
  // `owner`: user and group that the sandbox's processes run as, where they are not ours.
  static Result<SandboxDirectory> make(const StateDirectory& state, const std::string& id,
                                       std::optional<std::pair<std::uint32_t, std::uint32_t>> owner);
  SandboxDirectory(SandboxDirectory&&) = default;
  SandboxDirectory& operator=(SandboxDirectory&&) = delete;
  ~SandboxDirectory();

  // A directory in it, made if it is missing, opened with O_PATH.
  Result<UniqueFd> directory(const std::string& name);

 private:
  SandboxDirectory() = default;
  UniqueFd parent_, fd_;
  std::string path_, name_;
  std::optional<std::pair<std::uint32_t, std::uint32_t>> owner_;
};

}  // namespace sandy::host
