// The policy's command line flags, the same for every verb that takes a policy.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "policy/caller.h"
#include "policy/draft.h"

namespace sandy::cli {

// Flags fill the same draft as JSON does. With --policy the file is read first, and flags add to its lists. A single value that
// the file has otherwise is a contradiction, and an error.
class PolicyFlags {
 public:
  void add_to(CLI::App& verb);

  // Whether --workspace or --private-workspace was given.
  bool names_workspace() const { return workspace_ || private_workspace_; }

  // The draft, still to be validated. An error names the file and what is wrong with it.
  Result<policy::PolicyDraft> draft(const policy::Caller& caller);

  // The file that draft() has read, absolute; "": none, or standard input.
  const std::string& policy_file() const { return read_from_; }

 private:
  using Value = std::optional<std::string>;  // given, also where it is empty

  Result<void> add_values(policy::PolicyDraft& draft) const;
  Result<void> add_workspace(policy::FilesystemDraft& filesystem, const policy::Caller& caller) const;
  Result<void> add_seccomp(policy::SeccompDraft& seccomp) const;

  Value policy_file_;
  std::string read_from_;
  std::vector<std::string> read_, write_, deny_, allow_domains_, deny_domains_, allow_private_, publish_, set_env_;
  Value workspace_, mount_, hostname_, cwd_, seccomp_, uid_, gid_;
  Value memory_, swap_, cpus_, pids_, io_read_, io_write_, wall_time_, open_files_, file_size_, tmp_size_, log_size_;
  bool private_workspace_ = false, best_effort_ = false, unsafe_broad_workspace_ = false, unsafe_ptrace_ = false;
};

// The key of a workspace that nobody named: the current directory is it.
inline constexpr char kCurrentDirectory[] = "current directory";

// With the flags' names in the place of the policy's keys that a person at a command line doesn't type.
Error in_flags(Error error);

}  // namespace sandy::cli
