// One set of names for `/` and the workspace.
//
// A model's file tools name files from the root ("/foo.py"), its shell by working directory ("foo.py") or from the root
// ("python /foo.py"). All must be the same file. So each top-level name that is not the system's is kept as an entry of the workspace, and
// `/` has a symbolic link to it: an entry that a command makes in `/` is moved into the workspace. Where both are on one mount (a private
// workspace) that is a rename, done at once. Where they are not (a bound one) it is a copy, done when a command has ended, as one that still writes
// would write to the old file; what is too large or can't be copied stays in `/`, where the file tools find it.
#pragma once

#include <set>
#include <string>
#include <string_view>

#include "agent/copy_tree.h"
#include "base/unique_fd.h"

namespace sandy::agent {

class WorkspaceNames {
 public:
  // `root`: the directory of top-level names ("/"). `root_names`: those that are the system's, never touched.
  WorkspaceNames(std::string root, std::string workspace, std::set<std::string, std::less<>> root_names);

  // An inotify(7) descriptor that is readable when sync() has something to do; -1 if the machine gave none, and
  // then sync() looks at everything each time.
  int descriptor() const { return inotify_.get(); }

  // Makes the two agree on all that changed since the last call. `at_rest`: no command is just running, as far as is known.
  void sync(bool at_rest);

  // Where the file of this absolute, mapped path is: the workspace's, or, if only `/` has its first name, that.
  std::string locate(const std::string& mapped) const;

 private:
  void scan(bool at_rest);
  void reconcile(const std::string& name, bool at_rest);
  bool copy_in(const std::string& name);

  static constexpr std::size_t kMaxNames = 10'000;  // more are not linked: each costs a start a system call or two
  bool is_system(std::string_view name) const;

  std::string root_, workspace_, own_name_;
  std::set<std::string, std::less<>> root_names_;
  std::set<std::string> waiting_;  // changed names that are to be looked at when at rest
  bool one_mount_;
  CopyBudget budget_;  // of one sync(), for all names
  UniqueFd inotify_;
};

}  // namespace sandy::agent
