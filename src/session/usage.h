// What a sandbox uses, as JSON: the answer to `stats` (PROTOCOL.md), and what `sandy stats --json` prints. Pure.
#pragma once

#include <optional>

#include "cgroup/sandbox_cgroup.h"
#include "session/wire/frame.h"

namespace sandy::session {

// Bytes, microseconds, percent. A key that the kernel doesn't tell is missing, and so is a limit that isn't set.
wire::Json usage_json(const cgroup::Usage& usage, const std::optional<plan::CgroupPlan>& limits);

}  // namespace sandy::session
