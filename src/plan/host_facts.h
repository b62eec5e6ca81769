// What this host is and has: the plan's second input. Values only; host/ finds them.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace sandy::plan {

enum class FileType { missing, directory, file, socket, other };  // other: FIFO, device

// A symbolic link that was met on the way to a path: where it is (no links in `path` itself) and its text.
struct Symlink {
  std::string path, target;
  bool operator==(const Symlink&) const = default;
};

// A host path, resolved when the sandbox is planned.
struct HostPath {
  std::string canonical;  // without links; of a missing path: what would be created
  FileType type = FileType::missing;
  std::vector<Symlink> links;
  std::vector<std::string> passed;  // directories that ".." left again: canonical
  bool operator==(const HostPath&) const = default;
};

// Whether, and how, this host lets us have control groups of our own (cgroups(7)).
struct CgroupFacts {
  enum class Way {
    none,
    systemd,    // a scope of the caller's service manager
    delegated,  // a directory below `parent`, which was delegated to us
  };
  Way way = Way::none;
  bool memory = false, swap = false, cpus = false, pids = false, io = false;  // what can be limited there
  std::string parent;  // delegated
  std::string why;     // there is none, or not all of them
  std::string fix;     // what gets them
  bool operator==(const CgroupFacts&) const = default;
};

struct HostFacts {
  std::uint32_t uid = 0, gid = 0;          // of the caller
  std::string home;                        // of the caller, as $HOME has it
  std::string bwrap;                       // path of bubblewrap
  std::set<std::string> bwrap_options;     // "--bind-fd", ...: what this bubblewrap knows
  std::map<std::string, std::string> environment;  // the caller's: looked at only for the names that a policy passes, PATH and TERM
  std::map<std::string, HostPath> paths;   // by the path that was asked for: every one that the plan may need
  std::vector<std::string> etc_names;      // of the /etc entries that the default view has, those this host has
  HostPath state_dir;                      // Sandy's own: hidden where a rule would show it
  std::vector<HostPath> kernel_trees;      // the host's /proc, /dev, /sys and the like, in what the policy shows: hidden there
  std::vector<HostPath> socket_dirs;       // where kept sandboxes listen, if it is in what the plan may show: hidden there
  std::vector<std::string> sockets;        // canonical paths of those that somebody is bound to, in what the plan may show; sorted
  std::vector<HostPath> policies;          // directories of those that have names: as those kept, and refused where a command could make one
  std::vector<HostPath> kept;              // what decides the next start (Sandy's programs, policy files): never writable but by a rule that names it
  CgroupFacts cgroup;
  std::uint64_t ram = 0;                   // bytes
  bool can_idmap = false;                  // as root: may make id-mapped mounts (mount_setattr(2))
};

// The paths, apart from the policy's own, that the plan asks facts about.
const std::vector<std::string>& system_paths();

// Programs that the plan looks for: where only `python3` is, the sandbox has the name `python` too.
inline constexpr const char* kPython3 = "/usr/bin/python3";
inline constexpr const char* kPythonNames[] = {"/usr/local/bin/python", "/usr/bin/python"};

// Entries of /etc that programs need and that hold nothing private. The rest of /etc is not shown.
const std::vector<std::string>& etc_candidates();

}  // namespace sandy::plan
