// From a draft that may be wrong to a policy that can't be.
#pragma once

#include "base/error.h"
#include "policy/caller.h"
#include "policy/draft.h"
#include "policy/enforcement.h"
#include "policy/policy.h"

namespace sandy::policy {

// Checks every value and how they go together; the first that is wrong is the error, which names
// the key that the draft remembers, the reason, and where there is one the way out. Nothing is
// skipped and nothing is guessed. Pure: paths are expanded and normalized as text. What they lead
// to is checked when it is known (plan/resolved_paths).
//
// A limit that is set by hand and that `enforcement` lacks is refused, unless limits.best_effort is
// on: then it stands in SandboxPolicy::degraded(), with the default limits that are lacking.
Result<SandboxPolicy> validate(const PolicyDraft& draft, const Caller& caller,
                               const Enforcement& enforcement = {});

}  // namespace sandy::policy
