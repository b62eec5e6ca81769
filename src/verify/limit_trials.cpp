#include <boost/asio/use_awaitable.hpp>

#include "verify/special_trials.h"

namespace sandy::verify {
namespace {

using Words = std::vector<std::string>;

constexpr std::uint64_t kPids = 64, kMemoryMib = 32, kWantedMib = 80;
constexpr std::chrono::milliseconds kLimit{20'000};
// Where the agent counts for want of a control group: so many are harmless.
constexpr std::uint64_t kMostForks = 2'000;

Words words(const char* attempt, std::uint64_t number) {
  Words out;
  out.emplace_back(attempt);
  out.push_back(std::to_string(number));
  return out;
}

Finding finding(const char* name, const char* attack, Judgement judgement) {
  return {{name, AttackClass::limits, {39}, attack}, judgement.verdict, std::move(judgement.detail), ""};
}

Judgement untried(const std::string& why) { return {Verdict::untried, why}; }

// "its memory by --memory" or the like stays as it is, if it is lower.
policy::Limits tight(const plan::CgroupPlan& group) {
  policy::Limits out;
  if (group.limits.pids) out.pids = std::min(*group.limits.pids, kPids);
  if (group.limits.memory) out.memory = std::min<std::uint64_t>(*group.limits.memory, kMemoryMib << 20);
  return out;
}

}  // namespace

asio::awaitable<void> limit_trials(Setting& setting, Sandboxed& sandbox, std::vector<Finding>& out) {
  const auto& plan = sandbox.sandbox().plan();
  constexpr const char* kForks = "make more processes than the limit";
  constexpr const char* kMemory = "use more memory than the limit";
  std::uint64_t pids = plan.watched_pids;
  bool has_memory = false;
  if (plan.cgroup) {
    const auto limits = tight(*plan.cgroup);
    if (limits.pids) pids = *limits.pids;
    has_memory = limits.memory.has_value();
    const auto changed = co_await sandbox.sandbox().set_limits(limits);
    if (!changed) {
      out.push_back(finding("forks", kForks, untried(shown(changed.error().text()))));
      out.push_back(finding("memory", kMemory, untried(shown(changed.error().text()))));
      co_return;
    }
  }
  if (pids == 0 || pids > kMostForks) {
    out.push_back(finding("forks", kForks, untried(pids == 0 ? "this sandbox has no limit of processes" : "the limit is " + std::to_string(pids) + ", too many to be harmless")));
  } else {
    Words attempt = words("forks", pids + 16);
    const Control control = setting.outside.control(attempt);
    const Inside inside = co_await sandbox.attempt(std::move(attempt), kLimit);
    out.push_back(finding("forks", kForks, judge(control, inside, Proof::report)));
  }
  if (!has_memory) {
    out.push_back(finding("memory", kMemory, untried("no control group limits memory here (sandy doctor)")));
    co_return;
  }
  Words attempt = words("memory", kWantedMib);
  const Control control = setting.outside.control(attempt);
  const Inside inside = co_await sandbox.attempt(std::move(attempt), kLimit);
  out.push_back(finding("memory", kMemory, judge(control, inside, Proof::report)));
}

}  // namespace sandy::verify
