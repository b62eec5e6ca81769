// Which limits need the kernel's control groups, and what follows where the machine offers none.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "policy/policy.h"

namespace sandy::policy {

// What the machine can enforce, found out by host/. The default is nothing: who forgets to say gets
// a refusal, not a sandbox without its limits.
struct Enforcement {
  bool memory = false;
  bool swap = false;
  bool cpus = false;
  bool pids = false;
  bool io = false;
  // Why not, for messages.
  std::string reason = "needs a control group, and nobody has looked for one";
  std::string fix;
};

struct UnenforceableLimit {
  std::string_view key;  // "limits.memory"
  bool by_hand = false;  // the policy sets it; otherwise it is a default
  bool operator==(const UnenforceableLimit&) const = default;
};

// The limits that the policy asks for, or that stand by default (memory, swap, pids), and that the
// machine can't enforce, in the order of the policy file. validate() refuses those set by hand
// unless limits.best_effort is on.
std::vector<UnenforceableLimit> unenforceable(const PolicyFields& fields,
                                              const Enforcement& enforcement);

// The limits among the keys of a `degraded`, in words for people: "not enforced by control groups here: limits.memory (watched by the agent), limits.swap". "" without any.
std::string unenforced_words(const std::vector<std::string>& degraded);

}  // namespace sandy::policy
