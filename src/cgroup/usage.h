// What the processes of a control group have used.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "cgroup/cgroup_directory.h"

namespace sandy::cgroup {

// Of one command, or a whole sandbox. What the kernel doesn't tell is absent.
struct Usage {
  std::optional<std::uint64_t> memory, memory_peak, swap;  // bytes
  std::uint64_t cpu_us = 0, throttled_us = 0;
  std::uint64_t oom_kills = 0;     // processes
  std::uint64_t forks_refused = 0; // at the limit of processes
  std::uint64_t processes = 0;     // of commands, now; with threads
  std::uint64_t io_read = 0, io_written = 0;  // bytes
  std::optional<double> memory_pressure, cpu_pressure, io_pressure;  // percent of the last ten seconds
};

// Of a sandbox's group (sandbox_cgroup.h), but for `forks_refused` and `processes`.
Usage read_usage(const Directory& group);

// Forks that were refused at a limit, as this group tells, or its pids.events.
std::uint64_t refused_in(const Directory& group);
std::uint64_t refused_in(std::string_view pids_events);

}  // namespace sandy::cgroup
