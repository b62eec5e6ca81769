// The limit of memory where no control group enforces it: somebody looks from time to time. What grows faster than that gets through, and so do files
// in memory; so a sandbox that has to do with this says so (`degraded`).
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace sandy::agent {

// If all processes of this PID namespace, but for `own`, have more than `limit` bytes of memory that they don't share with a file or others (proc_pid_statm(5): resident less
// shared), the largest is ended with SIGKILL. Its name then.
std::optional<std::string> end_largest_above(std::uint64_t limit, const std::vector<pid_t>& own);

}  // namespace sandy::agent
