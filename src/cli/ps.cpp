// sandy ps: the kept sandboxes of this user.
#include <time.h>

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/verbs.h"
#include "session/kept.h"

namespace sandy::cli {
namespace {

using Json = nlohmann::json;

struct PsOptions {
  bool all = false, json = false, quiet = false, names = false;
};

std::string duration_words(std::uint64_t seconds) {
  if (seconds < 120) return std::to_string(seconds) + " s";
  if (seconds < 7'200) return std::to_string(seconds / 60) + " min";
  if (seconds < 172'800) return std::to_string(seconds / 3'600) + " h";
  return std::to_string(seconds / 86'400) + " days";
}

void print_json(const std::vector<session::Kept>& sandboxes) {
  Json out = Json::array();
  for (const auto& [record, running] : sandboxes) {
    Json entry{{"id", record.id}, {"name", record.name}, {"state", running ? "running" : "stopped"}, {"created_ms", record.created_ms}, {"idle_ms", record.idle_ms}};
    if (running) entry["socket"] = record.socket;
    if (running) entry["pid"] = record.pid;
    out.push_back(std::move(entry));
  }
  // A path may be of any bytes; what is no UTF-8 nobody can connect to by this list.
  std::puts(out.dump(2, ' ', false, Json::error_handler_t::replace).c_str());
}

void print_table(const std::vector<session::Kept>& sandboxes) {
  const auto now = static_cast<std::uint64_t>(::time(nullptr));
  std::printf("%-16s  %-20s  %-7s  %-12s  %s\n", "SANDBOX", "NAME", "STATE", "CREATED", "IDLE TIMEOUT");
  for (const auto& [record, running] : sandboxes) {
    const auto created = record.created_ms / 1000;
    std::printf("%-16s  %-20s  %-7s  %-12s  %s\n", record.id.c_str(), record.name.empty() ? "-" : record.name.c_str(), running ? "running" : "stopped",
                (duration_words(now - std::min(now, created)) + " ago").c_str(), record.idle_ms == 0 ? "-" : duration_words(record.idle_ms / 1000).c_str());
  }
}

int ps(const PsOptions& options) {
  auto sandboxes = session::kept_sandboxes();
  if (!sandboxes) return print_error(sandboxes.error()), 1;
  if (!options.all && !options.json) std::erase_if(*sandboxes, [](const auto& kept) { return !kept.running; });
  if (options.names) {
    for (const auto& kept : *sandboxes) std::puts((kept.record.name.empty() ? kept.record.id : kept.record.name).c_str());
  } else if (options.quiet) {
    for (const auto& kept : *sandboxes) std::puts(kept.record.id.c_str());
  } else if (options.json) {
    print_json(*sandboxes);
  } else {
    print_table(*sandboxes);
  }
  return 0;
}

}  // namespace

void add_ps(CLI::App& app, ExitStatus& status) {
  auto* verb = app.add_subcommand("ps", "Which kept sandboxes are there?");
  auto options = std::make_shared<PsOptions>();
  verb->add_flag("--all,-a", options->all, "Also those that have stopped");
  auto* quiet = verb->add_flag("--quiet,-q", options->quiet, "Ids alone");
  verb->add_flag("--names", options->names, "Names alone, and the ids of those that have none")->excludes(quiet);
  verb->add_flag("--json", options->json, "All of them, as JSON");
  verb->callback([options, &status] { status.value = ps(*options); });
}

}  // namespace sandy::cli
