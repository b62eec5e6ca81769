// Where kept sandboxes listen: one Unix socket each, below $XDG_RUNTIME_DIR/sandy, which is gone after a reboot as they are.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "base/unique_fd.h"

namespace sandy::host {

struct KeptSocket {
  UniqueFd listener;
  std::string path;
};

// A directory for `state` in $XDG_RUNTIME_DIR/sandy or /run/user/UID/sandy, or `state`/sockets: the first that is ours alone or can be made so. The socket's mode is 0600. Nobody else may listen under
// this id.
Result<KeptSocket> listen_kept(const std::string& id, const std::string& state);
// Where that may be, but in `state`.
std::vector<std::string> kept_socket_directories();
// Of a path that the kernel's sockaddr_un doesn't hold, too.
Result<UniqueFd> connect_kept(const std::string& path);
// Whether the process at the other end is of our user (unix(7), SO_PEERCRED).
bool peer_is_ours(int socket);
// Removes those that are not of one of these sandboxes, which are all that are kept.
void sweep_kept_sockets(const std::string& state, const std::vector<std::string>& ids);

}  // namespace sandy::host
