// sandy stats: what sandboxes use.
#include <signal.h>
#include <time.h>

#include <cstdio>
#include <memory>

#include "cgroup/running.h"
#include "cgroup/support.h"
#include "cli/verbs.h"
#include "session/kept.h"
#include "session/usage.h"

namespace sandy::cli {
namespace {

struct StatsOptions {
  std::string id;
  bool watch = false, json = false;
};

volatile sig_atomic_t interrupted = 0;

std::string amount(const std::optional<std::uint64_t>& bytes) { return bytes ? session::size_words(*bytes) : "-"; }

std::string percent(const std::optional<double>& value) {
  if (!value) return "-";
  char text[32];
  std::snprintf(text, sizeof text, "%.1f %%", *value);
  return text;
}

// "12 MiB (5 MiB/s)".
std::string moved(std::uint64_t bytes, const std::optional<std::uint64_t>& limit) {
  return session::size_words(bytes) + (limit ? " (" + session::size_words(*limit) + "/s)" : std::string());
}

void print_table(const std::vector<cgroup::Running>& sandboxes) {
  std::printf("%-16s  %9s %9s %9s  %9s %9s  %9s %6s  %6s  %-20s %-20s  %s\n", "SANDBOX", "MEMORY", "PEAK", "LIMIT", "CPU", "HELD BACK", "PROCESSES", "LIMIT", "KILLED", "READ", "WRITTEN", "PRESSURE (memory, cpu, io)");
  for (const auto& sandbox : sandboxes) {
    const auto used = cgroup::usage_of(sandbox);
    const auto limits = cgroup::limits_of(sandbox);
    std::printf("%-16s  %9s %9s %9s  %7.1f s %7.1f s  %9llu %6s  %6llu  %-20s %-20s  %s, %s, %s\n", sandbox.id.c_str(), amount(used.memory).c_str(), amount(used.memory_peak).c_str(),
                amount(limits.memory).c_str(), static_cast<double>(used.cpu_us) / 1e6, static_cast<double>(used.throttled_us) / 1e6, static_cast<unsigned long long>(used.processes),
                limits.pids ? std::to_string(*limits.pids).c_str() : "-", static_cast<unsigned long long>(used.oom_kills), moved(used.io_read, limits.io_read).c_str(),
                moved(used.io_written, limits.io_write).c_str(), percent(used.memory_pressure).c_str(),
                percent(used.cpu_pressure).c_str(), percent(used.io_pressure).c_str());
  }
}

void print_json(const std::vector<cgroup::Running>& sandboxes) {
  wire::Json out = wire::Json::array();
  for (const auto& sandbox : sandboxes) {
    auto entry = session::usage_json(cgroup::usage_of(sandbox), cgroup::limits_of(sandbox));
    entry["sandbox"] = sandbox.id;
    out.push_back(std::move(entry));
  }
  std::puts(out.dump(2).c_str());
}

int stats(StatsOptions options) {
  ::signal(SIGPIPE, SIG_DFL);
  ::signal(SIGINT, [](int) { interrupted = 1; });
  // The name of a kept one; others have ids alone.
  if (!options.id.empty()) {
    if (auto kept = session::find_kept(options.id)) options.id = std::move(kept->record.id);
  }
  const auto support = cgroup::find_support();
  if (support.way == plan::CgroupFacts::Way::none) {
    print_error({"stats", "sandboxes have no control groups here, which count what they use: " + support.why, support.fix});
    return 1;
  }
  for (bool first = true;; first = false) {
    auto sandboxes = cgroup::running_sandboxes();
    if (!options.id.empty()) std::erase_if(sandboxes, [&](const auto& sandbox) { return sandbox.id != options.id; });
    if (sandboxes.empty() && !options.id.empty()) {
      if (!first) return 0;  // it has ended
      print_error({"stats", "no sandbox \"" + printable(options.id) + "\" runs with limits", "sandy stats lists all of yours"});
      return 1;
    }
    options.json ? print_json(sandboxes) : print_table(sandboxes);
    std::fflush(stdout);
    if (!options.watch || interrupted != 0) return 0;
    const timespec second{1, 0};
    ::nanosleep(&second, nullptr);
    if (interrupted != 0) return 0;
  }
}

}  // namespace

void add_stats(CLI::App& app, ExitStatus& status) {
  auto* verb = app.add_subcommand("stats", "What do running sandboxes use?");
  auto options = std::make_shared<StatsOptions>();
  verb->add_option("sandbox", options->id, "One sandbox's id (in Python: Sandbox().id), or the name of a kept one; without it, all of yours")->type_name("ID");
  verb->add_flag("--watch", options->watch, "Again every second, until the sandbox ends or Ctrl-C");
  verb->add_flag("--json", options->json, "As JSON: bytes, microseconds, percent");
  verb->callback([options, &status] { status.value = stats(*options); });
}

}  // namespace sandy::cli
