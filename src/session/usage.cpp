#include "session/usage.h"

#include <cstdio>
#include <iterator>

namespace sandy::session {

wire::Json usage_json(const cgroup::Usage& usage, const policy::GroupLimits& limits) {
  wire::Json out = wire::Json::object();
  const auto add = [&](const char* key, const auto& value) {
    if (value) out[key] = *value;
  };
  add("memory", usage.memory);
  add("memory_peak", usage.memory_peak);
  add("swap", usage.swap);
  out["cpu_us"] = usage.cpu_us;
  out["throttled_us"] = usage.throttled_us;
  out["oom_kills"] = usage.oom_kills;
  out["forks_refused"] = usage.forks_refused;
  out["processes"] = usage.processes;
  out["io_read"] = usage.io_read;
  out["io_written"] = usage.io_written;
  add("memory_pressure", usage.memory_pressure);
  add("cpu_pressure", usage.cpu_pressure);
  add("io_pressure", usage.io_pressure);
  add("memory_limit", limits.memory);
  add("swap_limit", limits.swap);
  add("cpus_limit", limits.cpus);
  add("pids_limit", limits.pids);
  add("io_read_limit", limits.io_read);
  add("io_write_limit", limits.io_write);
  return out;
}

std::string size_words(std::uint64_t bytes) {
  static constexpr const char* kUnits[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (value >= 1024 && unit + 1 < std::size(kUnits)) {
    value /= 1024;
    ++unit;
  }
  char text[48];
  std::snprintf(text, sizeof text, value < 10 && value != static_cast<double>(static_cast<int>(value)) ? "%.1f %s" : "%.0f %s", value, kUnits[unit]);
  return text;
}

}  // namespace sandy::session
