// Who else could have put a program where it is.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace sandy::host {

// Why somebody else than root and `owners` could have put this program there, safe to print: it, a directory above it, or one above what it is a
// link to belongs to them, or can be written to by them. "" where nobody could. A path that isn't absolute depends on the current directory.
std::string replaceable_by_others(const std::string& path, const std::vector<uid_t>& owners);

}  // namespace sandy::host
