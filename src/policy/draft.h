// A policy as it came in, and that may be wrong: what the user wrote, and where. The JSON reader,
// the command line and the Python package fill the same draft; validate() turns it into a
// SandboxPolicy or refuses it.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace sandy::policy {

// One value as the user wrote it. `key` says where, in the user's own words, for messages: a JSON
// key path ("limits.memory", "filesystem.read[2]"), or a command line flag ("--memory").
//   draft.limits.memory = {"2G", "--memory"};
//   draft.filesystem.read.push_back({"~/data", "--read"});
struct Text {
  std::string value;  // any bytes but NUL
  std::string key;
  // For paths: exact bytes ({"bytes": …} in JSON), so that "~" and "*" mean themselves.
  bool literal = false;
};

struct Flag {
  bool value = false;
  std::string key;
};

// One variable to set in the sandbox.
struct Variable {
  std::string name;
  std::string value;
  std::string key;
};

using OptionalText = std::optional<Text>;
using OptionalFlag = std::optional<Flag>;

struct WorkspaceDraft {
  OptionalText path;   // host directory: absolute, relative to the caller's, or "~", "~/…"
  OptionalText mount;  // absolute path in the sandbox
  // "private" or "bind"; absent: "bind" where there is a path, otherwise "private".
  OptionalText mode;
};

struct FilesystemDraft {
  WorkspaceDraft workspace;
  std::vector<Text> read, write, deny;  // host paths, as for workspace.path
  OptionalFlag unsafe_broad_workspace;
};

struct NetworkDraft {
  OptionalText mode;  // "none" or "allowlist"
  std::vector<Text> allow, deny, allow_private;
  OptionalText dns_answers;   // "synthetic" or "real"
  std::vector<Text> publish;  // "PORT" or "HOST_PORT:PORT"
};

// Sizes, durations and numbers are text in the spellings of sizes.h; JSON numbers come as their
// decimal text.
struct LimitsDraft {
  OptionalText memory, swap;       // size
  OptionalText cpus;               // cores, "1.5"
  OptionalText pids;               // count
  OptionalText io_read, io_write;  // size, a second
  OptionalText wall_time;          // duration
  OptionalText open_files;         // count
  OptionalText file_size;          // size
  OptionalText tmp_size;           // size
  OptionalText log_size;           // size
  OptionalFlag best_effort;
};

struct SeccompDraft {
  OptionalText base;  // "default" or "strict"; not together with `file`
  OptionalText file;  // host path, as for workspace.path
  OptionalFlag unsafe_ptrace;
};

struct EnvironmentDraft {
  std::vector<Text> pass;  // names
  std::vector<Variable> set;
};

struct ProcessDraft {
  OptionalText hostname;
  OptionalText cwd;       // absolute path in the sandbox
  OptionalText uid, gid;  // decimal
};

struct PolicyDraft {
  OptionalText description;  // for people: what the policy is for
  FilesystemDraft filesystem;
  NetworkDraft network;
  LimitsDraft limits;
  SeccompDraft seccomp;
  EnvironmentDraft environment;
  ProcessDraft process;
};

}  // namespace sandy::policy
