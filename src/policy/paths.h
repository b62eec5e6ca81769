// Paths of a policy, as bytes: expanded and tidied. No effects: nothing here knows what exists.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"
#include "policy/caller.h"
#include "policy/draft.h"

namespace sandy::policy {

// An absolute path without "//", "/./" and trailing slashes; "/.." is "/". Any other ".." stays:
// behind a symbolic link it leads to the parent of the link's target, and which names are links
// only the file system knows.
std::string normalized(std::string_view absolute);

// Whether a normalized path has "..", so that its text alone doesn't say what it names.
bool has_dot_dot(std::string_view path);

// Whether `path` is `tree` or below it. Both normalized, and without "..".
bool is_within(std::string_view path, std::string_view tree);

// A host path as the user wrote it, absolute and normalized: "~" and "~/x" are the caller's home,
// relative paths start at the caller's directory. Refuses the empty path, "~user", NUL, and more
// than 4,095 bytes (PATH_MAX counts the NUL).
Result<std::string> host_path(const Text& text, const Caller& caller);

// The same for a path inside the sandbox, which must be absolute as it stands.
Result<std::string> sandbox_path(const Text& text);

}  // namespace sandy::policy
