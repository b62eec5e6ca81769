// Pseudo-terminals: pty(7), made in the sandbox's own devpts.
#pragma once

#include <expected>

#include "base/unique_fd.h"

namespace sandy::agent {

struct Pty {
  UniqueFd master, slave;
};

// An error is an errno value.
std::expected<Pty, int> open_pty(unsigned short rows, unsigned short cols);
void resize_pty(int master, unsigned short rows, unsigned short cols);

}  // namespace sandy::agent
