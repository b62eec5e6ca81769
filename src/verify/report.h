// All findings of a run, as a table for people and as JSON for programs. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "verify/attack.h"

namespace sandy::verify {

struct Report {
  std::vector<Finding> findings;
  std::vector<std::string> degraded;  // the policy's limits that this machine doesn't enforce
  std::uint64_t milliseconds = 0;

  std::size_t count(Verdict verdict) const;
};

// A line each, and a last one that sums up.
std::string as_table(const Report& report);

// Version 1, as sandy-verify(1) describes it: keys may be added, and none changes its meaning.
std::string as_json(const Report& report);

}  // namespace sandy::verify
