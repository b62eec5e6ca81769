#include <algorithm>
#include <set>

#include "plan/seccomp/decide.h"
#include "plan/seccomp/seccomp_policy.h"

namespace sandy::seccomp {
namespace {

std::string line(const std::string& action, const std::string& what, const std::string& reason) {
  std::string out = action;
  out.resize(std::max<std::size_t>(out.size() + 2, 20), ' ');
  out += what;
  if (!reason.empty()) out += "  # " + printable(reason);
  return out;
}

}  // namespace

std::vector<std::string> describe(const Policy& policy, Arch arch, const CompileOptions& options) {
  // What an earlier row of the same call always decides would only mislead here.
  std::set<std::pair<const Row*, std::uint32_t>> deciding;
  for (const NumberRows& entry : rows_by_number(policy, arch, options)) {
    for (const Row* row : entry.rows) deciding.emplace(row, entry.number);
  }
  std::vector<std::string> out;
  for (const Row& row : policy.rows) {
    std::string what;
    for (const std::string& name : row.syscalls) {
      const auto number = policy.number(arch, name);
      if (number && deciding.contains({&row, *number}))
        what += (what.empty() ? "" : " ") + printable(name);
    }
    if (what.empty()) continue;
    for (std::size_t i = 0; i < row.when.size(); ++i)
      what += (i == 0 ? " when " : " and ") + row.when[i].text();
    out.push_back(line(row.action.text(), what, row.reason));
  }
  out.push_back(line(policy.default_action.text(), "every other call", policy.default_reason));
  out.push_back(line(policy.foreign_abi.text(),
                     arch == Arch::x86_64 ? "every i386 and x32 call" : "every 32-bit ARM call",
                     ""));
  return out;
}

}  // namespace sandy::seccomp
