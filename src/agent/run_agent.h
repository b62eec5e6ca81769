// The agent's process.
#pragma once

namespace sandy::agent {

// Takes over the process: descriptor 3 is the socket to `sandy`, all others are closed. Doesn't return while the socket is
// open, and then ends the process; returns 1 where the process was not set up as the launcher does.
int run_agent();

}  // namespace sandy::agent
