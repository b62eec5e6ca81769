// A plan as text that a person, a golden test or a diff can read. The same plan gives the same bytes.
#pragma once

#include <string>
#include <vector>

#include "plan/plan.h"

namespace sandy::plan {

// One bubblewrap option a line with its operands; descriptors by what they are open on ("<host /usr>"), not by number.
// `seccomp_rows`: the filter, a row a line (seccomp::describe); left out if empty.
std::string dump_text(const SandboxPlan& plan, const std::vector<std::string>& seccomp_rows = {});

// The same as JSON: `bwrap` (argv, with descriptors named as above), `environment`, `etc`, `limits`, `degraded`, ...
std::string dump_json(const SandboxPlan& plan, const std::vector<std::string>& seccomp_rows = {});

}  // namespace sandy::plan
