// The policy's command line flags, the same for every verb that takes a policy.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "base/error.h"
#include "policy/caller.h"
#include "policy/draft.h"

namespace sandy::cli {

// Flags fill the same draft as JSON does. With --policy FILE the file is read first, and flags add to its lists and replace its
// single values.
class PolicyFlags {
 public:
  void add_to(CLI::App& verb);

  // The draft, still to be validated. An error names the file and what is wrong with it.
  Result<policy::PolicyDraft> draft(const policy::Caller& caller) const;

 private:
  std::string policy_file_;
  std::vector<std::string> read_, write_, deny_, allow_domains_, set_env_, pass_env_;
  std::string workspace_, mount_, hostname_, cwd_, seccomp_, uid_, gid_;
  std::string memory_, swap_, cpus_, pids_, io_read_, io_write_, wall_time_, open_files_, file_size_, tmp_size_;
  bool private_workspace_ = false, best_effort_ = false, unsafe_broad_workspace_ = false, unsafe_ptrace_ = false;
};

// A whole file of at most 1 MiB. "-" is standard input.
Result<std::string> read_file(const std::string& path);

}  // namespace sandy::cli
