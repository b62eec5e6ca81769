// What the proxy gives up before it talks to anybody.
#pragma once

#include <cstddef>

#include "base/error.h"

namespace sandy::proxy {

// For good: as root, root's rights; core dumps, tracing by others, descriptors and memory without limit, new privileges; the file system and, where the
// kernel has that part of Landlock, other processes' abstract sockets and signals; every system call but those of seccomp-policies/proxy.json.
Result<void> confine();

// How many descriptors confine() leaves; to be asked before it.
std::size_t descriptor_limit();

}  // namespace sandy::proxy
