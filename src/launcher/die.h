// How the launcher fails: one line on stderr, and status 1.
#pragma once

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cerrno>

namespace sandy::launcher {

// `what`, and errno in words.
[[noreturn]] inline void die(const char* what) {
  dprintf(2, "sandy-launch: %s: %s\n", what, strerrordesc_np(errno));
  _exit(1);
}

}  // namespace sandy::launcher
