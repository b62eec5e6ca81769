// What bubblewrap is and can do here.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "host/capability.h"

namespace sandy::host {

struct BubblewrapExamination {
  std::vector<Capability> capabilities;  // found, privileges, options, version: always these four
  Result<void> usable;                   // the error that every start ends with, or success
};

// Runs it at most twice, for --help (5 s) and --version (2 s).
BubblewrapExamination examine_bubblewrap();

// What is known of the version that `--version` printed. Pure.
Capability bubblewrap_version(std::string_view printed);

}  // namespace sandy::host
