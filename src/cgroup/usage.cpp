#include "cgroup/usage.h"

#include "cgroup/cgroup_text.h"

namespace sandy::cgroup {

Usage read_usage(const Directory& group) {
  Usage out;
  out.memory = single_value(group.read("memory.current"));
  out.memory_peak = single_value(group.read("memory.peak"));
  out.swap = single_value(group.read("memory.swap.current"));
  const auto cpu = group.read("cpu.stat");
  out.cpu_us = flat_value(cpu, "usage_usec").value_or(0);
  out.throttled_us = flat_value(cpu, "throttled_usec").value_or(0);
  out.oom_kills = flat_value(group.read("memory.events"), "oom_kill").value_or(0);
  const auto io = group.read("io.stat");
  out.io_read = io_total(io, "rbytes");
  out.io_written = io_total(io, "wbytes");
  out.memory_pressure = pressure_some_avg10(group.read("memory.pressure"));
  out.cpu_pressure = pressure_some_avg10(group.read("cpu.pressure"));
  out.io_pressure = pressure_some_avg10(group.read("io.pressure"));
  return out;
}

std::uint64_t refused_in(const Directory& group) { return refused_in(group.read("pids.events")); }

std::uint64_t refused_in(std::string_view pids_events) { return flat_value(pids_events, "max").value_or(0); }

}  // namespace sandy::cgroup
