#include <fcntl.h>
#include <unistd.h>

#include <boost/asio/use_awaitable.hpp>

#include "host/proc_text.h"
#include "verify/host_processes.h"
#include "verify/special_trials.h"

namespace sandy::verify {
namespace {

using namespace std::chrono_literals;
using Words = std::vector<std::string>;

constexpr auto kPatience = 2000ms;
// The second is for a machine that has more to do than it can.
constexpr std::chrono::milliseconds kTimeLimits[] = {400ms, 8000ms};

Words words(std::string first, std::string second) {
  Words out;
  out.push_back(std::move(first));
  out.push_back(std::move(second));
  return out;
}

// Sees the attempt's processes outside a sandbox, where they go on when what started them has ended.
Control survives_outside(const Setting& setting, const char* attempt, const std::string& mark) {
  Words argv = words(attempt, mark);
  Control out = setting.outside.control(argv);
  if (out.worked && processes_with(mark).empty()) out = {false, "it is not seen outside a sandbox either"};
  end_processes_with(mark);
  return out;
}

// A line of `after` that `before` has not, with this text.
std::string new_mount(const std::string& before, const std::string& after, const std::string& text) {
  for (std::size_t at = 0; at < after.size();) {
    const std::string line = after.substr(at, after.find('\n', at) - at);
    at += line.size() + 1;
    if (line.find(text) != std::string::npos && before.find(line) == std::string::npos) return line;
  }
  return {};
}

}  // namespace

std::string own_mounts() { return host::read_text("/proc/self/mountinfo"); }

asio::awaitable<void> survivor_trials(Setting& setting, Sandboxed& sandbox, std::vector<Finding>& out) {
  const std::string mark = "outstay-" + setting.nonce;
  // A daemon is the same kind of process; this one would hold the control up until its end.
  const Control control = survives_outside(setting, "daemon", "control-" + mark);
  Inside inside;
  for (const auto limit : kTimeLimits) {
    Words argv = words("outstay", mark);
    const Answer answer = co_await sandbox.run(std::move(argv), limit);
    const auto report = read_report(answer.output, setting.nonce);
    inside.end = "it was not at work when its time was up";
    // That it said so and was ended at its time limit is what shows that there was something to end.
    if (report.word != AttemptReport::Word::done || answer.end.value("reason", "") != "timed_out") continue;
    inside.report = {AttemptReport::Word::refused, "ended at the time limit, with all its children"};
    break;
  }
  inside.arrived = !all_gone(mark, kPatience);
  auto judgement = judge(control, inside, Proof::report);
  out.push_back({{"outstay", AttackClass::processes, {40}, "go on behind a time limit"}, judgement.verdict, std::move(judgement.detail), ""});
  end_processes_with(mark);
}

asio::awaitable<Control> start_daemon(Setting& setting, Sandboxed& sandbox) {
  const std::string mark = "daemon-" + setting.nonce;
  Control control = survives_outside(setting, "daemon", "control-" + mark);
  Words argv = words("daemon", mark);
  const Inside inside = co_await sandbox.attempt(std::move(argv));
  if (control.worked && (inside.report.word != AttemptReport::Word::done || processes_with(mark).empty())) {
    control = {false, "it could not be started inside: " + (inside.report.word == AttemptReport::Word::none ? inside.end : shown(inside.report.detail))};
  }
  co_return control;
}

std::vector<Finding> survivors(Setting& setting, const Control& daemon, const std::string& id, const std::string& mounts) {
  std::vector<Finding> out;
  const std::string mark = "daemon-" + setting.nonce;
  Inside left;
  left.report = {AttemptReport::Word::refused, "gone with the sandbox"};
  left.arrived = !all_gone(mark, kPatience);
  auto judgement = judge(daemon, left, Proof::report);
  out.push_back({{"daemon", AttackClass::processes, {40}, "leave a process behind"}, judgement.verdict, std::move(judgement.detail), ""});
  end_processes_with(mark);

  Inside rest;
  rest.report = {AttemptReport::Word::refused, "no mount and no directory of its is left"};
  const std::string& state = setting.state_directory;
  const auto directory = state + "/sandbox-" + id;
  const bool has_directory = ::access(directory.c_str(), F_OK) == 0;
  // Others mount things too.
  const std::string mount = new_mount(mounts, own_mounts(), "/sandbox-" + id);
  rest.arrived = has_directory || !mount.empty();
  rest.seen = has_directory ? directory + " is left" : "a mount is left: " + mount;
  const Control control{::access(state.c_str(), F_OK) == 0 && !mounts.empty(), "Sandy's state directory, or the list of mounts, can't be looked at"};
  auto rest_judgement = judge(control, rest, Proof::report);
  out.push_back({{"left-behind", AttackClass::host_side, {40}, "leave a mount or a directory behind"}, rest_judgement.verdict, std::move(rest_judgement.detail), ""});
  return out;
}

}  // namespace sandy::verify
