// Which file a path of a file tool means.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace sandy::files {

// The path to open. Pure.
//
// - A relative path is below `workspace` (an absolute path, no slash at its end).
// - An absolute path stays where its first component is in `root_names` (the names that the
//   sandbox's own root has: "usr", "tmp", …) or is the workspace's first component; else it is a
//   name in the workspace: "/foo.py" is "/workspace/foo.py". "/" is the root.
// - "//" and "/./" are removed; a "/" at the end stays, as it says "directory". "~" means nothing.
// - ".." is the kernel's, as only it knows where links lead, but not above the root that the caller
//   sees: "/../x" is "/x", and in "/a/../../x", which is in the workspace, the second ".." is
//   dropped.
// - "" stays "", which the operations refuse.
std::string map_path(std::string_view path, std::string_view workspace,
                     std::span<const std::string> root_names);

}  // namespace sandy::files
