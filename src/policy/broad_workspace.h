// Which host directories are too much to be writable in a sandbox without an unsafe_ key.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "policy/caller.h"

namespace sandy::policy {

// Why `path` must not be writable unless filesystem.unsafe_broad_workspace is on ("it is the home
// directory"), or nullopt. `path` is absolute, normalized and without "..". Asked for paths as
// written, and once more as resolved (path_checks.h); the caller's own paths should be resolved
// alike.
std::optional<std::string> broad_workspace_reason(std::string_view path, const Caller& caller);

}  // namespace sandy::policy
