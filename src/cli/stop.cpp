// sandy stop: ends kept sandboxes' processes, and leaves their workspaces.
#include <memory>
#include <string>
#include <vector>

#include "cli/kept_client.h"
#include "cli/verbs.h"

namespace sandy::cli {

void add_stop(CLI::App& app, ExitStatus& status) {
  auto* verb = app.add_subcommand("stop", "End kept sandboxes; their workspaces stay, for sandy create --resume");
  auto ids = std::make_shared<std::vector<std::string>>();
  verb->add_option("sandbox", *ids, "Id or name")->required()->type_name("ID...");
  verb->callback([ids, &status] { status.value = end_kept(*ids, false, true); });
}

}  // namespace sandy::cli
