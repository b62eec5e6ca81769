// What --policy and `sandy check` were given: a file, standard input, or the name of a policy.
#pragma once

#include <string>

#include "base/error.h"
#include "policy/caller.h"

namespace sandy::cli {

struct PolicySource {
  std::string file;  // absolute; "": standard input
  std::string text;  // at most 1 MiB
};

// A name (policy/policy_name.h) is looked for where host/named_policy says, and never in the current directory. "-" is standard input.
Result<PolicySource> read_policy_source(const std::string& given, const policy::Caller& caller);

}  // namespace sandy::cli
