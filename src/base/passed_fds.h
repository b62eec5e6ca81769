// The descriptors that came with a message, unix(7), SCM_RIGHTS.
#pragma once

#include <sys/socket.h>

#include <vector>

#include "base/unique_fd.h"

namespace sandy {

// All of them, after a recvmsg(2) with MSG_CMSG_CLOEXEC: what isn't taken is closed.
std::vector<UniqueFd> passed_fds(const msghdr& message);

}  // namespace sandy
