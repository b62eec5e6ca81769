// A TCP socket that listens on this machine's loopback.
#pragma once

#include <cstdint>

#include "base/error.h"
#include "base/unique_fd.h"

namespace sandy::host {

struct LoopbackListener {
  UniqueFd socket;
  std::uint16_t port = 0;
};

// At 127.0.0.1. `port` 0: any that is free.
Result<LoopbackListener> listen_on_loopback(std::uint16_t port);

}  // namespace sandy::host
