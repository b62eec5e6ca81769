// Attacks that take more than one attempt: operations on files, what outlives its end, and limits.
#pragma once

#include "verify/inside.h"
#include "verify/trial.h"

namespace sandy::verify {

// The trusted side reads and writes what the sandbox has laid out (rows 30, 42, 43).
asio::awaitable<void> transfer_trials(Setting& setting, Sandboxed& sandbox, std::vector<Finding>& out);

// Processes that do not want to end (row 40). Those of `daemon_mark` are to be gone when the sandbox is: after its close, survivors() tells.
asio::awaitable<void> survivor_trials(Setting& setting, Sandboxed& sandbox, std::vector<Finding>& out);
asio::awaitable<Control> start_daemon(Setting& setting, Sandboxed& sandbox);
// What is left of a sandbox that is closed: its processes, mounts, and directory of this name in the state directory.
std::vector<Finding> survivors(Setting& setting, const Control& daemon, const std::string& id, const std::string& mounts);
std::string own_mounts();

// More than its share (row 39). Changes the sandbox's limits, so it comes last.
asio::awaitable<void> limit_trials(Setting& setting, Sandboxed& sandbox, std::vector<Finding>& out);

}  // namespace sandy::verify
