// One command in one sandbox, with this process's stdin, stdout, stderr, terminal and signals.
#pragma once

#include <string>

#include "cli/outcome_file.h"
#include "cli/relay.h"
#include "policy/policy.h"

namespace sandy::cli {

struct ForegroundOptions : RelayOptions {
  bool ask = false;              // at our terminal, for what no rule of the network names
  std::string audit;             // a file for the decisions about the network; "": none
  std::string policy_file;       // where the policy was read from; "": from flags alone
};

// Starts the sandbox, runs the command, relays, closes the sandbox. Returns the exit status for `sandy` (verbs.h).
int run_in_foreground(const policy::SandboxPolicy& policy, const ForegroundOptions& options, const OutcomeFile& outcome);

}  // namespace sandy::cli
