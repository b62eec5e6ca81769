// How a policy is enforced on a host: the plan. A pure value, printed by `sandy plan`, carried out by host/.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "plan/host_facts.h"
#include "policy/policy.h"

namespace sandy::plan {

// Something that a descriptor is opened for before bubblewrap runs. Its number is known only then.
struct FdSlot {
  enum class Kind {
    host_path,   // `text`: a canonical path, opened without following links (openat2(2), RESOLVE_NO_SYMLINKS)
    state,       // `text`: a directory below the sandbox's own state directory, made if missing
    etc,         // the view of /etc (EtcView)
    data,        // `text`: the bytes of a small file
    agent,       // the sandy-agent program
    seccomp,     // the compiled filter
  };
  Kind kind;
  std::string text;
  bool idmap = false;  // as root: shown with the sandbox's user as owner of what root owns
  bool operator==(const FdSlot&) const = default;
};

// One operation of bubblewrap on the file system it builds, in order.
struct MountStep {
  enum class Kind { bind, ro_bind, symlink, tmpfs, proc, dev, directory, ro_data, remount_ro };
  Kind kind;
  std::string dest;                     // absolute path in the sandbox
  std::size_t slot = 0;                 // bind, ro_bind, ro_data
  std::string target;                   // symlink
  std::uint64_t size = 0;               // tmpfs, bytes
  std::optional<unsigned> permissions;  // tmpfs, directory, ro_data
  bool operator==(const MountStep&) const = default;
};

// /etc as the sandbox sees it: copies of some of the host's entries, and files made here.
struct EtcView {
  std::vector<std::string> copied;               // names below /etc
  std::map<std::string, std::string> made;       // name to content
  std::map<std::string, std::string> links;      // name to target: those that lead to what the policy shows
  std::vector<std::string> directories, files;   // empty ones, for the policy's own mounts below /etc
  bool operator==(const EtcView&) const = default;
};

// A socket of the host, hidden wherever a tree shows it.
struct HiddenSocket {
  std::string path;  // canonical, on the host
  bool in_writable = false;  // also where commands can write
  bool operator==(const HiddenSocket&) const = default;
};

// A network in which only what the rules allow exists. Nothing: no network but the sandbox's own loopback.
struct NetworkPlan {
  std::vector<std::string> rules;  // for the proxy, a line each: "allow RULE", "deny RULE", "private RULE", "real"
  std::vector<policy::PublishedPort> publish;
  bool operator==(const NetworkPlan&) const = default;
};

// What the kernel's control groups enforce. A default that this host can't have is not here, but in SandboxPlan::degraded.
struct CgroupPlan {
  CgroupFacts::Way way = CgroupFacts::Way::none;
  std::string parent;          // CgroupFacts::parent
  policy::GroupLimits limits;  // of commands
  bool operator==(const CgroupPlan&) const = default;
};

// The keys of those that are set: "limits.memory", …
std::vector<std::string> keys_of_set(const policy::GroupLimits& limits);

// What a host like this enforces, of a policy's limits and the defaults. Nothing: no control group is to be had.
std::optional<CgroupPlan> plan_cgroup(const policy::GroupLimits& limits, const CgroupFacts& here, std::uint64_t ram);

enum class RootKind {
  private_directory,  // a writable directory in the state directory: unknown top-level names belong to the workspace
  tmpfs,              // read-only once it is built
};

inline constexpr char kRootDirectory[] = "root";  // in the sandbox's state directory: RootKind::private_directory
inline constexpr std::uint64_t kDefaultLogBytes = 1'048'576;

struct SandboxPlan {
  RootKind root = RootKind::tmpfs;
  std::vector<FdSlot> slots;
  std::vector<MountStep> mounts;
  std::optional<EtcView> etc;  // nothing where the policy shows all of the host's /etc
  std::vector<HiddenSocket> hidden_sockets;
  std::optional<NetworkPlan> network;
  std::optional<CgroupPlan> cgroup;  // nothing: no limits but those of the agent
  // What no control group enforces, the agent does as well as it can: it looks at the memory of processes from time to time, and gives commands an RLIMIT_NPROC.
  // 0: none. These stand in `degraded`.
  std::uint64_t watched_memory = 0, watched_pids = 0;
  std::string io_path;         // on the host: what limits of I/O are for is the disk that this is on
  std::string workspace;       // in the sandbox
  std::string home, cwd;
  std::string hostname;
  std::uint32_t uid = 0, gid = 0;                       // as seen inside
  std::optional<std::pair<std::uint32_t, std::uint32_t>> host_ids;  // user and group to switch to first; when the caller is root
  std::vector<std::string> environment;                 // NAME=value, of commands
  std::vector<std::string> private_variables;           // names of those whose values the policy gave: not for printing
  std::vector<std::string> root_names;                  // top-level names that are the system's
  policy::Seccomp seccomp;
  std::uint64_t open_files = 0, file_size = 0, wall_time_ms = 0;  // 0 = none
  std::uint64_t log_size = kDefaultLogBytes;  // of each process' output
  std::vector<std::string> degraded;                    // what the policy or the defaults ask for and this host doesn't enforce
  std::string bwrap;

  bool operator==(const SandboxPlan&) const = default;
};

// The error names the policy's key, the reason, and what to do.
Result<SandboxPlan> make_plan(const policy::SandboxPolicy& policy, const HostFacts& facts);

// Limits that stand where a policy names none, and the host can enforce them.
std::uint64_t default_memory(std::uint64_t ram);
inline constexpr std::uint64_t kDefaultSwap = 0, kDefaultPids = 1'024;

// The policy's rules as the proxy reads them (NetworkPlan::rules).
std::vector<std::string> rule_lines(const policy::Network& network);

// bubblewrap's options, NUL-separated in an `--args` file: `fds[i]` is the descriptor of slot i. The program to run
// (the agent's path in the sandbox) is not among them.
std::vector<std::string> bwrap_options(const SandboxPlan& plan, const std::vector<int>& fds);

// The options that a bubblewrap must know: all that bwrap_options() may use, and --args.
const std::vector<std::string>& needed_bwrap_options();

// What gives a bubblewrap the options that it lacks: the version, as a sentence for people. Empty if it lacks none.
std::string bwrap_remedy(const std::vector<std::string>& lacking);

// As root the sandbox's processes become this user: files that root owns are then not theirs. 65534 is `nobody`, which
// exists in every complete user namespace and owns nothing.
inline constexpr std::uint32_t kNobody = 65534;

// Names that the sandbox has and the host has not (`python`); last in PATH.
inline constexpr const char* kExtraPrograms = "/run/bin";

// Where the agent program is in the sandbox.
inline constexpr const char* kAgentPath = "/run/sandy-agent";

}  // namespace sandy::plan
