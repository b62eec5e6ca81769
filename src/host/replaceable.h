// Who else could have put something where it is: a program, a policy.
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <string>
#include <vector>

namespace sandy::host {

// Why somebody else than root and `owners` could change this very file, directory or link, whose status is lstat(2)'s, safe to print: it belongs to
// them, or can be written to by them. "" where nobody could. A group that has this user alone counts as the user.
std::string changeable_by_others(const std::string& path, const struct stat& status, const std::vector<uid_t>& owners);

// The same of a path: of what is there, each directory above it, and each link that is followed on the way, with those above that. What isn't there
// has a reason too. A path that isn't absolute depends on the current directory.
std::string replaceable_by_others(const std::string& path, const std::vector<uid_t>& owners);

}  // namespace sandy::host
