#include "policy/enforcement.h"

#include "base/error.h"

namespace sandy::policy {

std::vector<UnenforceableLimit> unenforceable(const PolicyFields& fields,
                                              const Enforcement& enforcement) {
  struct Row {
    std::string_view key;
    bool set;
    bool has_default;
    bool enforced;
  };
  const Limits& limits = fields.limits;
  const Row rows[] = {
      {"limits.memory", limits.memory.has_value(), true, enforcement.memory},
      {"limits.swap", limits.swap.has_value(), true, enforcement.swap},
      {"limits.cpus", limits.cpus.has_value(), false, enforcement.cpus},
      {"limits.pids", limits.pids.has_value(), true, enforcement.pids},
      {"limits.io_read", limits.io_read.has_value(), false, enforcement.io},
      {"limits.io_write", limits.io_write.has_value(), false, enforcement.io},
  };
  std::vector<UnenforceableLimit> out;
  for (const Row& row : rows) {
    if (!row.enforced && (row.set || row.has_default)) out.push_back({row.key, row.set});
  }
  return out;
}

std::string unenforced_words(const std::vector<std::string>& degraded) {
  std::string out;
  for (const auto& key : degraded) {
    if (!key.starts_with("limits.")) continue;
    out += (out.empty() ? "not enforced by control groups here: " : ", ") + printable(key);
    // What the agent does instead (memory_watch.h, supervisor.cpp).
    if (key == "limits.memory") out += " (watched by the agent)";
    if (key == "limits.pids") out += " (at most by RLIMIT_NPROC)";
  }
  return out;
}

}  // namespace sandy::policy
