// The name of the directory that holds a view of /etc: a digest of all that goes into it.
#pragma once

#include <string>
#include <string_view>

#include "host/state_directory.h"
#include "plan/plan.h"

namespace sandy::host {

inline constexpr std::string_view kEtcPrefix = "etc-", kEtcPathsPrefix = "etc.paths-";

// Theory of operation. What is copied is told by the identities (inode, size, times) of its files and directories, also of the directories
// below. Listing those costs as much as the rest of a plan. So the paths that a walk came by are kept in the state directory, with
// their identities. A directory's times tell of every entry that came, went or was replaced; so as long as all identities are as they
// were, another walk would find the same.
std::string etc_name(const StateDirectory& state, const plan::EtcView& view);

}  // namespace sandy::host
