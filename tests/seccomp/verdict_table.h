// Reads verdicts.table: the rows that every built-in policy is tested with.
#pragma once

#include <string>
#include <vector>

#include "plan/seccomp/decide.h"

namespace sandy::seccomp {

struct VerdictRow {
  std::string line;  // "verdicts.table:12: default x86_64 …", for messages
  std::string policy;
  Arch arch = Arch::x86_64;
  CompileOptions options;
  Call call;
  std::string verdict;
};

Result<std::vector<VerdictRow>> read_verdict_table(const std::string& path);

}  // namespace sandy::seccomp
