// What must hold of a policy's paths, whatever their spelling.
#pragma once

#include "base/error.h"
#include "policy/caller.h"
#include "policy/policy.h"

namespace sandy::policy {

// Refuses a workspace or writable path that is too broad, what each sandbox has of its own, Sandy's
// state, and paths that contradict each other. Asked twice: by validate() for the paths as written,
// and for what they lead to on a host (plan/resolved_paths). `written` is `filesystem` as it was
// written, its rules in the same order: for messages. A path that still has ".." is passed over.
Result<void> check_paths(const Filesystem& filesystem, const Caller& caller,
                         const Filesystem& written);

}  // namespace sandy::policy
