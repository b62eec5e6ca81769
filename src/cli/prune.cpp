// sandy prune: removes the kept sandboxes that have stopped.
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "cli/kept_client.h"
#include "cli/verbs.h"
#include "session/kept.h"

namespace sandy::cli {
namespace {

int prune(bool yes) {
  const auto all = session::kept_sandboxes();
  if (!all) return print_error(all.error()), 1;
  std::vector<std::string> ids;
  for (const auto& kept : *all) {
    if (!kept.running) ids.push_back(kept.record.id);
  }
  if (ids.empty()) return 0;
  if (!yes) {
    const std::string which = ids.size() == 1 ? "the sandbox " + ids.front() + ", which has stopped, with its workspace" : std::to_string(ids.size()) + " sandboxes that have stopped, with their workspaces";
    if (::isatty(0) != 1) {
      print_error({"prune", "would remove " + which + ", and there is nobody to ask", "give --yes"});
      return kUsage;
    }
    std::fprintf(stderr, "Remove %s? Type yes and Enter: ", which.c_str());
    char answer[16] = {};
    if (std::fgets(answer, sizeof answer, stdin) == nullptr || std::string(answer) != "yes\n") return 1;
  }
  return end_kept(ids, true, false);
}

}  // namespace

void add_prune(CLI::App& app, ExitStatus& status) {
  auto* verb = app.add_subcommand("prune", "Remove the kept sandboxes that have stopped");
  auto yes = std::make_shared<bool>(false);
  verb->add_flag("--yes,-y", *yes, "Without asking");
  verb->callback([yes, &status] { status.value = prune(*yes); });
}

}  // namespace sandy::cli
