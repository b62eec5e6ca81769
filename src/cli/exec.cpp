// sandy exec: a command in a kept sandbox.
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/command_end.h"
#include "cli/kept_client.h"
#include "cli/verbs.h"
#include "policy/sizes.h"

namespace sandy::cli {
namespace {

using wire::Json;

struct ExecOptions {
  std::string id;
  std::vector<std::string> command, env;
  std::optional<std::string> timeout;
  std::string cwd;
  bool interactive = false, tty = false, detach = false;
};

// Begins it as a process that goes on without us, and prints its number.
asio::awaitable<int> detached(std::shared_ptr<KeptClient> client, const Relay& relay, const RelayOptions& options) {
  Json header = relay.request_header();
  header["op"] = "spawn";
  header["merge"] = true;
  // That we close the connection then is nothing to it.
  const auto first = co_await client->begin(std::move(header), relay.request_payload());
  if (!first) {
    print_error({"the sandbox", "its server is gone", ""});
    co_return kCouldNotStart;
  }
  if (first->ev() == "started") {
    std::printf("%llu\n", static_cast<unsigned long long>(first->number("process", 0)));
    co_return 0;
  }
  const int status = status_of(first->header, options, options.cwd, 0);
  if (status == 0) print_error({"the sandbox", "its agent broke the protocol", ""});
  co_return status == 0 ? kCouldNotStart : status;
}

asio::awaitable<int> exec(asio::io_context& io, const ExecOptions& options, const RelayOptions& relayed) {
  auto client = KeptClient::connect(io, options.id);
  if (!client) {
    print_error(client.error());
    co_return kCouldNotStart;
  }
  const auto relay = std::make_shared<Relay>(io, relayed);
  if (options.detach) co_return co_await detached(*client, *relay, relayed);
  (*client)->relay(relay, relay->request_header(), relay->request_payload());
  const Json end = co_await relay->run(*client);
  const int status = relay->output_error() != 0 ? kCouldNotStart : status_of(end, relayed, relayed.cwd, relay->cancelled_by());
  note_refusals(end);
  co_return status;
}

int exec(const ExecOptions& options) {
  RelayOptions relayed;
  relayed.argv = unmarked_words(options.command);
  // The id before it has ended the options, so that CLI11 leaves it.
  if (relayed.argv.front() == "--") relayed.argv.erase(relayed.argv.begin());
  if (relayed.argv.empty()) {
    print_error({"exec", "there is no command after --", ""});
    return kCouldNotStart;
  }
  relayed.cwd = options.cwd;
  relayed.env = options.env;
  relayed.tty = options.tty;
  relayed.input = options.interactive;
  for (const auto& variable : options.env) {
    if (variable.find('=') == std::string::npos || variable.front() == '=') {
      print_error({"--env " + printable(variable), "is no NAME=VALUE", ""});
      return kCouldNotStart;
    }
  }
  // In the background it is for those who attach.
  if (options.tty && !options.detach && ::isatty(0) != 1) {
    print_error({"--tty", "standard input is not a terminal", "leave it out"});
    return kCouldNotStart;
  }
  if (options.timeout) {
    const auto limit = policy::parse_duration({*options.timeout, "--timeout"});
    if (!limit) return print_error(limit.error()), kCouldNotStart;
    relayed.timeout_ms = *limit;
  }
  return run_in_loop([&](asio::io_context& io) { return exec(io, options, relayed); });
}

}  // namespace

void add_exec(CLI::App& app, ExitStatus& status) {
  auto* verb = app.add_subcommand("exec", "Run a command in a kept sandbox");
  auto options = std::make_shared<ExecOptions>();
  verb->add_flag("--interactive,-i", options->interactive, "Standard input is the command's; without it, the command has none. With --detach: that of who attaches");
  verb->add_flag("--tty,-t", options->tty, "A terminal of its own. With --detach: for who attaches");
  verb->add_flag("--detach,-d", options->detach, "In the background: prints its number, for attach and logs");
  verb->add_option("--cwd", options->cwd, "Working directory in the sandbox")->type_name("DIR");
  verb->add_option("--env", options->env, "NAME=VALUE for the command; may be repeated")->type_name("NAME=VALUE")->take_all()->allow_extra_args(false);
  verb->add_option("--timeout", options->timeout, "End the command after this time, e.g. 30 or 10m")->type_name("TIME");
  verb->add_option("sandbox", options->id, "Id or name")->required()->type_name("ID");
  verb->add_option("command", options->command, "The command and its arguments, after --")->required()->type_name("CMD...");
  verb->footer("Example: sandy exec -it build -- bash\n" + std::string(kCommandStatuses));
  verb->positionals_at_end();
  verb->callback([options, &status] { status.value = exec(*options); });
}

}  // namespace sandy::cli
