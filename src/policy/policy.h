// What a sandbox is allowed: the validated policy. Pure values, no effects.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "policy/network_rule.h"

namespace sandy::policy {

enum class Access { deny, read, write };

// One line of filesystem.read, .write or .deny. `path` is an absolute host path, normalized
// (paths.h); symbolic links and ".." are not resolved: that is an effect (host/), done when a
// sandbox starts.
struct PathRule {
  std::string path;
  Access access = Access::deny;
  std::string key;  // where the rule stands, for messages: "filesystem.read[2]"
  bool operator==(const PathRule&) const = default;
};

enum class WorkspaceMode {
  private_,  // a new, empty directory that goes away with the sandbox
  bind,      // a host directory, writable in place
};

struct Workspace {
  WorkspaceMode mode = WorkspaceMode::private_;
  std::string path;                  // host directory; bind only
  std::string mount = "/workspace";  // where the sandbox sees it; equal to `path`: at its own path
  // Where the two stand, for messages.
  std::string path_key = "filesystem.workspace.path", mount_key = "filesystem.workspace.mount";
  bool operator==(const Workspace&) const = default;
};

struct Filesystem {
  Workspace workspace;
  // Sorted by path (bytes), each path once: a parent stands before what is in it.
  std::vector<PathRule> rules;
  // Lets "/", $HOME, a parent of the state directory, … be writable (broad_workspace.h).
  bool unsafe_broad_workspace = false;
  bool operator==(const Filesystem&) const = default;
};

enum class NetworkMode { none, allowlist };

// A port of the sandbox that this machine reaches at its loopback.
struct PublishedPort {
  std::uint16_t port = 0;       // in the sandbox, at its loopback
  std::uint16_t host_port = 0;  // 0: any that is free
  bool operator==(const PublishedPort&) const = default;
};

// "PORT" or "HOST_PORT:PORT", as in a policy.
std::string text(const PublishedPort& port);

struct Network {
  NetworkMode mode = NetworkMode::none;
  // Empty with mode none. A name in `allow` without a port means 80 and 443; a rule in `deny` without
  // one, all ports.
  std::vector<NetworkRule> allow, deny, allow_private;
  // Names have the addresses that the host's resolver says, and not made-up ones: it is asked, but for allowed names alone.
  bool real_dns_answers = false;
  std::vector<PublishedPort> publish;  // each port of either side once
  bool operator==(const Network&) const = default;
};

// What needs the kernel's control groups.
struct GroupLimits {
  std::optional<std::uint64_t> memory, swap;       // bytes
  std::optional<double> cpus;                      // cores
  std::optional<std::uint64_t> pids;               // processes and threads
  std::optional<std::uint64_t> io_read, io_write;  // bytes a second
  bool operator==(const GroupLimits&) const = default;

  // Calls `each(FIELD, OTHER'S FIELD, KEY)` for all of them, in the order of the policy file.
  template <typename Self, typename Other, typename Each>
  static void for_each(Self& self, Other& other, const Each& each) {
    each(self.memory, other.memory, "limits.memory");
    each(self.swap, other.swap, "limits.swap");
    each(self.cpus, other.cpus, "limits.cpus");
    each(self.pids, other.pids, "limits.pids");
    each(self.io_read, other.io_read, "limits.io_read");
    each(self.io_write, other.io_write, "limits.io_write");
  }
};

// Absent = the default, which a machine that can't enforce it may leave out (and then says so in
// `degraded`). Present = set by hand: enforced or refused.
struct Limits : GroupLimits {
  std::optional<std::uint64_t> wall_time_ms;       // life of the sandbox
  std::optional<std::uint64_t> open_files;         // RLIMIT_NOFILE
  std::optional<std::uint64_t> file_size;          // bytes, RLIMIT_FSIZE
  std::optional<std::uint64_t> tmp_size;           // bytes, each of /tmp, /var/tmp, /dev/shm
  std::optional<std::uint64_t> log_size;           // bytes of output kept of each process that goes on by itself
  bool best_effort = false;
  bool operator==(const Limits&) const = default;
};

enum class SeccompBase { default_, strict, file };

struct Seccomp {
  SeccompBase base = SeccompBase::default_;
  std::string file;            // absolute host path; base == file only
  bool unsafe_ptrace = false;  // lets a debugger trace its own children
  bool operator==(const Seccomp&) const = default;
};

struct Environment {
  // Names taken from the caller's environment where it has them; sorted.
  std::vector<std::string> pass;
  std::map<std::string, std::string> set;  // names and values
  bool operator==(const Environment&) const = default;
};

struct Process {
  std::string hostname = "sandbox";
  std::string cwd;  // absolute path in the sandbox, as written; "" = the workspace
  std::uint32_t uid = 1000, gid = 1000;  // as seen inside
  bool operator==(const Process&) const = default;
};

// The fields of a policy, as plain data. A SandboxPolicy holds one that was checked.
struct PolicyFields {
  Filesystem filesystem;
  Network network;
  Limits limits;
  Seccomp seccomp;
  Environment environment;
  Process process;
  std::string description;  // for people, printable; "": none. It allows nothing
  bool operator==(const PolicyFields&) const = default;
};

// A policy that passed validate(): the only way to make one, so whoever holds one need not check
// again.
class SandboxPolicy {
 public:
  const PolicyFields& fields() const { return fields_; }
  const PolicyFields* operator->() const { return &fields_; }
  // The limits that this machine can't enforce, "limits.memory", …: defaults, and with
  // limits.best_effort also those set by hand (policy/enforcement.h).
  const std::vector<std::string>& degraded() const { return degraded_; }

 private:
  friend class Validator;  // policy/validate.cpp
  SandboxPolicy(PolicyFields fields, std::vector<std::string> degraded)
      : fields_(std::move(fields)), degraded_(std::move(degraded)) {}
  PolicyFields fields_;
  std::vector<std::string> degraded_;
};

}  // namespace sandy::policy
