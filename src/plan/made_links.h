// The symbolic links that are made again in a sandbox, so that a path works there as the policy spells it.
#pragma once

#include <string>
#include <vector>

#include "plan/host_facts.h"
#include "plan/view_entries.h"

namespace sandy::plan {

class MadeLinks {
 public:
  // The links on the way to a path, and the directories that ".." leaves again: the kernel looks for them too.
  void add(const HostPath& path);

  // Where a path is with these links on the way: nothing is mounted through a link.
  std::string resolve(const std::string& path) const;

  // Adds what no exposed tree shows already.
  void make(ViewEntries& entries) const;

 private:
  std::vector<Symlink> links_;
  std::vector<std::string> passed_;
};

}  // namespace sandy::plan
