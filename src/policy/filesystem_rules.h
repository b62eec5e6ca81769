// The filesystem part of validate().
#pragma once

#include "base/error.h"
#include "policy/caller.h"
#include "policy/draft.h"
#include "policy/policy.h"

namespace sandy::policy {

// Paths expanded and normalized, rules sorted, and no two parts in contradiction as they are
// written (path_checks.h).
Result<Filesystem> check_filesystem(const FilesystemDraft& draft, const Caller& caller);

}  // namespace sandy::policy
