#include "plan/seccomp/decide.h"

#include <algorithm>

namespace sandy::seccomp {
namespace {

bool counts(const Row& row, Arch arch, const CompileOptions& options) {
  return row.applies(arch) && (!row.needs_ptrace || options.allow_ptrace);
}

}  // namespace

Action decide(const Policy& policy, Arch arch, const CompileOptions& options, const Call& call) {
  if (call.audit_arch != audit_arch(arch)) return policy.foreign_abi;
  // -1 is what a tracer leaves to skip a call: no foreign ABI, and never a row's.
  if (arch == Arch::x86_64 && (call.number & kX32Bit) != 0 && call.number != ~std::uint32_t{0}) {
    return policy.foreign_abi;
  }
  for (const Row& row : policy.rows) {
    if (!counts(row, arch, options)) continue;
    const bool names_it = std::ranges::any_of(row.syscalls, [&](const std::string& name) {
      return policy.number(arch, name) == call.number;
    });
    if (!names_it) continue;
    if (std::ranges::all_of(row.when, [&](const ArgTest& test) { return test.holds(call.args); }))
      return row.action;
  }
  return policy.default_action;
}

std::vector<NumberRows> rows_by_number(const Policy& policy, Arch arch,
                                       const CompileOptions& options) {
  std::vector<std::pair<std::uint32_t, const Row*>> pairs;
  for (const Row& row : policy.rows) {
    if (!counts(row, arch, options)) continue;
    for (const std::string& name : row.syscalls) {
      if (const auto number = policy.number(arch, name)) pairs.emplace_back(*number, &row);
    }
  }
  std::ranges::stable_sort(pairs, {}, &std::pair<std::uint32_t, const Row*>::first);

  std::vector<NumberRows> out;
  for (const auto& [number, row] : pairs) {
    if (out.empty() || out.back().number != number) out.push_back({number, {}});
    auto& rows = out.back().rows;
    if (rows.empty() || !rows.back()->when.empty()) rows.push_back(row);
  }
  return out;
}

}  // namespace sandy::seccomp
