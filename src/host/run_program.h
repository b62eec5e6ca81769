// Runs a short program to its end, with a time limit, and returns what it printed.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "base/error.h"

namespace sandy::host {

struct ProgramResult {
  int status = 0;  // wait(2)
  std::string out, err;
  bool timed_out = false;
};

enum class ProgramEnvironment { empty /* but for LC_ALL=C */, inherited };

// Standard input: /dev/null. Output beyond 256 KiB is dropped.
Result<ProgramResult> run_program(const std::vector<std::string>& argv, std::chrono::milliseconds limit, ProgramEnvironment environment = ProgramEnvironment::empty);

}  // namespace sandy::host
