// sandy rm: removes kept sandboxes.
#include <memory>
#include <string>
#include <vector>

#include "cli/kept_client.h"
#include "cli/verbs.h"

namespace sandy::cli {

void add_rm(CLI::App& app, ExitStatus& status) {
  auto* verb = app.add_subcommand("rm", "Remove kept sandboxes, with their private workspaces");
  auto ids = std::make_shared<std::vector<std::string>>();
  auto force = std::make_shared<bool>(false);
  verb->add_option("sandbox", *ids, "Id or name")->required()->type_name("ID...");
  verb->add_flag("--force,-f", *force, "Also those that run");
  verb->callback([ids, force, &status] { status.value = end_kept(*ids, true, *force); });
}

}  // namespace sandy::cli
