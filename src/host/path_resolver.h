// Where a host path really is: links resolved one by one, and remembered.
#pragma once

#include <string>

#include "base/error.h"
#include "base/unique_fd.h"
#include "plan/host_facts.h"

namespace sandy::host {

// `path`: absolute, with any ".." as it was written. Taken as the kernel takes it (path_resolution(7)): at most 40 links are followed, and ".." is
// the parent of where the links led. A component that can't be looked into (EACCES) counts as missing from there on: what the caller can't see
// can't be shown. ".." behind such a one, or behind what is no directory, is an error.
Result<plan::HostPath> resolve_path(const std::string& path);

// A canonical path opened with O_PATH, without following any link on the way (openat2(2), RESOLVE_NO_SYMLINKS): if somebody has put a link
// there since it was resolved, this fails.
Result<UniqueFd> open_canonical(const std::string& path);

}  // namespace sandy::host
