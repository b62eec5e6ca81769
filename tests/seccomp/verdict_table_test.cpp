// Every row of verdicts.table, by the program that a sandbox loads and by the policy's own meaning.
#include <gtest/gtest.h>

#include <set>

#include "plan/seccomp/bpf_evaluator.h"
#include "plan/seccomp/seccomp_compile.h"
#include "verdict_table.h"

namespace sandy::seccomp {
namespace {

TEST(VerdictTable, EveryRowHolds) {
  const auto rows = read_verdict_table(SANDY_VERDICT_TABLE);
  ASSERT_TRUE(rows) << rows.error().text();
  std::set<std::tuple<std::string, Arch, bool, std::uint32_t, std::uint32_t,
                      std::array<std::uint64_t, 6>>>
      distinct;
  for (const VerdictRow& row : *rows) {
    const auto program = builtin_program(row.policy, row.arch, row.options);
    ASSERT_TRUE(program) << row.line << ": " << program.error().text();
    const auto verdict = evaluate(*program, row.call);
    ASSERT_TRUE(verdict) << row.line << ": " << verdict.error().text();
    EXPECT_EQ(verdict_text(*verdict), row.verdict) << row.line;

    const auto policy = builtin(row.policy);
    ASSERT_TRUE(policy) << policy.error().text();
    EXPECT_EQ(decide(**policy, row.arch, row.options, row.call).text(), row.verdict) << row.line;
    distinct.emplace(row.policy, row.arch, row.options.allow_ptrace, row.call.audit_arch,
                     row.call.number, row.call.args);
  }
  EXPECT_GE(distinct.size(), 200U) << "rows were lost";
}

}  // namespace
}  // namespace sandy::seccomp
