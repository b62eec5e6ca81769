#include "base/passed_fds.h"

#include <cstring>

namespace sandy {

std::vector<UniqueFd> passed_fds(const msghdr& message) {
  std::vector<UniqueFd> out;
  auto* const all = const_cast<msghdr*>(&message);  // CMSG_NXTHDR changes nothing, but takes it so
  for (cmsghdr* c = CMSG_FIRSTHDR(all); c != nullptr; c = CMSG_NXTHDR(all, c)) {
    if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
    for (std::size_t i = 0; i < (c->cmsg_len - CMSG_LEN(0)) / sizeof(int); ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(c) + i * sizeof fd, sizeof fd);
      out.emplace_back(fd);
    }
  }
  return out;
}

}  // namespace sandy
