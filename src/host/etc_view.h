// The sandbox's /etc as a directory on this host, so that it costs one mount: made once for what is in it, and used again.
#pragma once

#include "base/error.h"
#include "base/unique_fd.h"
#include "host/state_directory.h"
#include "plan/plan.h"

namespace sandy::host {

struct EtcDirectory {
  UniqueFd path;  // O_PATH, to bind
  UniqueFd lock;  // shared lock: while it is held nobody removes the directory
};

// Copies the host's entries (contents and links; not owners, modes or devices; an entry that can't be read is left out) and writes
// the made ones. The directory is named by a digest of all that went into it, so a changed host file gives a new one (but
// not one that is changed in place within a copied directory).
Result<EtcDirectory> etc_directory(const StateDirectory& state, const plan::EtcView& view);

// Removes those that nobody has used for a day.
void sweep_etc_directories(const StateDirectory& state);

}  // namespace sandy::host
