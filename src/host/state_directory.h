// Where sandboxes keep what must be on a disk: a directory of the user's, with one directory a sandbox.
//
// A sandbox's directory belongs to it while it holds a lock on it (flock(2)), which the kernel drops when its holder dies, however it dies. So a
// directory that can be locked is a left-over, and the next start removes it. Unless it is to be kept: then it has a record of its sandbox, from which
// another one can go on with it, and is there until somebody removes it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/unique_fd.h"

namespace sandy::host {

// Opens a directory, which is made, 0700, with its parents, where it is missing; only if it is ours and nobody else can enter it.
Result<UniqueFd> open_private(const std::string& path);

class StateDirectory {
 public:
  // $XDG_STATE_HOME/sandy, ~/.local/state/sandy, or /var/tmp/sandy-UID: the first that is ours (owner, mode 0700) or can be made.
  static Result<StateDirectory> open();
  // The path that open() would use, without making it: for policy::Caller.
  static std::string likely_path();

  const std::string& path() const { return path_; }
  int fd() const { return fd_.get(); }

  // Removes the directories of sandboxes that are gone and not to be kept. Errors are for the next time.
  void sweep();

  struct Kept {
    std::string id, record;  // a record that can't be read is empty
    bool running = false;
  };
  // Those that are to be kept, by id.
  std::vector<Kept> kept() const;
  // Of one that doesn't run.
  Result<void> remove_kept(const std::string& id) const;
  // For whoever looks at all that are kept, to add another one. Waits until nobody else has it, or fails.
  Result<UniqueFd> lock_kept(bool waits = true) const;

 private:
  std::string path_;
  UniqueFd fd_;
};

// One sandbox's directory; removed, with its content, when this is destroyed, unless it is to be kept.
class SandboxDirectory {
 public:
  // `owner`: user and group that the sandbox's processes run as, where they are not ours.
  static Result<SandboxDirectory> make(const StateDirectory& state, const std::string& id,
                                       std::optional<std::pair<std::uint32_t, std::uint32_t>> owner);
  // The one of a kept sandbox that doesn't run any more.
  static Result<SandboxDirectory> adopt(const StateDirectory& state, const std::string& id,
                                        std::optional<std::pair<std::uint32_t, std::uint32_t>> owner);
  SandboxDirectory(SandboxDirectory&&) = default;
  SandboxDirectory& operator=(SandboxDirectory&&) = delete;
  ~SandboxDirectory();

  // A directory in it, made if it is missing, opened with O_PATH.
  Result<UniqueFd> directory(const std::string& name);

  // Removes what is in a directory of it but what leads to `path` there; that too where it isn't all directories: a link there would lead the next set-up astray.
  Result<void> leave_only(const std::string& name, std::string_view path);

  // From now on it stays, with this record.
  Result<void> keep(const std::string& record);
  // It is not to be kept any more.
  void discard() { kept_ = false; }

 private:
  SandboxDirectory() = default;
  UniqueFd parent_, fd_;
  std::string path_, name_;
  bool kept_ = false;
  std::optional<std::pair<std::uint32_t, std::uint32_t>> owner_;
};

}  // namespace sandy::host
