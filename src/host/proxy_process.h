// Starts sandy-proxy (proxy/main.cpp).
#pragma once

#include "base/error.h"
#include "base/unique_fd.h"
#include "host/spawn.h"

namespace sandy::host {

struct ProxyProcess {
  Child child;
  UniqueFd control;   // our end; closing it ends the proxy
  UniqueFd messages;  // read end of its stderr
};

Result<ProxyProcess> start_proxy();

}  // namespace sandy::host
