// What a sandbox uses, as JSON: the answer to `stats` (PROTOCOL.md), and what `sandy stats --json` prints; and in words. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cgroup/usage.h"
#include "plan/plan.h"
#include "session/wire/frame.h"

namespace sandy::session {

// Bytes, microseconds, percent. A key that the kernel doesn't tell is missing, and so is a limit that isn't set.
wire::Json usage_json(const cgroup::Usage& usage, const policy::GroupLimits& limits);

// "128 MiB", "1.5 GiB"; bytes where it is less than one KiB.
std::string size_words(std::uint64_t bytes);

}  // namespace sandy::session
