// What stands where in the file system of a sandbox, before it becomes bubblewrap's operations.
#pragma once

#include <map>
#include <string>

#include "plan/path_text.h"
#include "plan/plan.h"

namespace sandy::plan {

struct Entry {
  // exposed: host files. hidden: nothing may be reached there. made: the sandbox's own.
  enum class What { exposed, hidden, made } what = What::made;
  // exposed, hidden:
  policy::Access access = policy::Access::deny;
  std::string host;  // canonical path on the host
  FileType type = FileType::directory;
  std::string key;       // of the rule, for messages; "": the default view
  bool in_copy = false;  // hidden: in the view of /etc
  // made:
  MountStep step{};
};

// By destination: a parent stands before what is in it.
class ViewEntries {
 public:
  using Map = std::map<std::string, Entry, ByComponents>;
  using Item = Map::value_type;

  Map& all() { return entries_; }
  const Map& all() const { return entries_; }
  bool contains(const std::string& dest) const { return entries_.contains(dest); }

  // A rule's or the default view's word on a path. Where both have one, the rule's counts; rules that contradict each other don't get here
  // (resolved_paths.h).
  void add_path(const std::string& dest, policy::Access access, const HostPath& path, const std::string& key);
  // Gives way to what a rule shows there. What is the sandbox's own needs no hiding.
  void add_made(MountStep step);

  // The nearest entry above `dest`, if it shows host files: `dest` is then one of them.
  const Item* exposure_above(const std::string& dest) const;
  // Whether something is mounted above `dest`, so that no directory of the sandbox's root can be there.
  bool is_covered(const std::string& dest) const;
  bool has_exposed_below(const std::string& dest) const;
  // Something below it is to be reached through it.
  bool is_passed(const std::string& dest) const;

 private:
  Map entries_;
};

}  // namespace sandy::plan
