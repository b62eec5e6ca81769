// The texts of cgroupfs, and of /proc/PID/cgroup. Pure. (Documentation/admin-guide/cgroup-v2.rst)
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sandy::cgroup {

// The unified hierarchy's path in a /proc/PID/cgroup (cgroups(7)): the line "0::PATH". None: the kernel has no cgroup v2, or it is not mounted.
std::optional<std::string> unified_path(std::string_view proc_cgroup);

// A number of a file of lines "KEY NUMBER" (memory.events, cpu.stat, pids.events).
std::optional<std::uint64_t> flat_value(std::string_view text, std::string_view key);

// A file's only number; none for "max".
std::optional<std::uint64_t> single_value(std::string_view text);

// A key's sum over all devices of an io.stat: lines "MAJOR:MINOR key=NUMBER key=NUMBER".
std::uint64_t io_total(std::string_view io_stat, std::string_view key);

// A key's lowest limit of any device in an io.max: lines "MAJOR:MINOR rbps=NUMBER wbps=max". None: there is none.
std::optional<std::uint64_t> io_limit(std::string_view io_max, std::string_view key);

// The share of the last ten seconds, in percent, in which some task waited: "some avg10=0.12 ..." (PSI, Documentation/accounting/psi.rst).
std::optional<double> pressure_some_avg10(std::string_view text);

// Process ids, one a line.
std::vector<int> process_ids(std::string_view cgroup_procs);

// The innermost of the ids in a /proc/PID/status's line "NSpid:": the process's id in its own PID namespace.
std::optional<int> innermost_pid(std::string_view proc_status);

// Whether `name` is among words that blanks part (cgroup.controllers).
bool has_word(std::string_view words, std::string_view name);

}  // namespace sandy::cgroup
