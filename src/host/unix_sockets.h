// The Unix sockets of this host that have a name in the file system.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "plan/plan.h"

namespace sandy::host {

// Where those are that somebody is bound to, in or below one of these canonical directories: canonical paths, sorted. From /proc/net/unix, which
// has the name that each was bound to, in our network namespace. What isn't found there any more is left out: deleted, renamed, or below what the
// caller can't enter. So are relative names: the directory that they are relative to was its binder's, and is not in the list.
Result<std::vector<std::string>> bound_sockets(const std::vector<std::string>& trees);

// Of these absolute names, as they were bound.
std::vector<std::string> located_sockets(const std::vector<std::string>& names, const std::vector<std::string>& trees);

// A socket may go away while bubblewrap starts, which then makes an empty file to mount on: removes that, once the mounts are made.
void remove_placeholders(const std::vector<plan::HiddenSocket>& sockets);

}  // namespace sandy::host
