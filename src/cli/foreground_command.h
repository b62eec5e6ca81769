// One command in one sandbox, with this process's stdin, stdout, stderr, terminal and signals.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/outcome_file.h"
#include "policy/policy.h"

namespace sandy::cli {

struct ForegroundOptions {
  std::vector<std::string> argv;
  std::uint64_t timeout_ms = 0;  // 0: none
  bool tty = false;              // a PTY, and our terminal in raw mode
  bool ask = false;              // at our terminal, for what no rule of the network names
  std::string audit;             // a file for the decisions about the network; "": none
  std::string policy_file;       // where the policy was read from; "": from flags alone
};

// Starts the sandbox, runs the command, relays, closes the sandbox. Returns the exit status for `sandy` (verbs.h).
int run_in_foreground(const policy::SandboxPolicy& policy, const ForegroundOptions& options, const OutcomeFile& outcome);

}  // namespace sandy::cli
