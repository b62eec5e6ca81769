// sandy attach: this terminal, for a process of a kept sandbox that goes on by itself.
#include <unistd.h>

#include <memory>
#include <string>

#include "cli/command_end.h"
#include "cli/kept_client.h"
#include "cli/verbs.h"

namespace sandy::cli {
namespace {

using wire::Json;

struct AttachOptions {
  std::string id;
  std::uint64_t process = 0;
  bool no_input = false;
};

asio::awaitable<int> attach(asio::io_context& io, const AttachOptions& options, const RelayOptions& relayed) {
  auto client = KeptClient::connect(io, options.id);
  if (!client) {
    print_error(client.error());
    co_return kCouldNotStart;
  }
  std::uint64_t number = options.process;
  if (number == 0) {
    const auto note_last = [&](wire::Frame event) {
      if (event.flag("running", false)) number = event.number("process", 0);
    };
    (void)co_await (*client)->request(wire::request("processes"), {}, note_last);
    if (number == 0) {
      print_error({"attach", "no process runs there that was begun to go on by itself", "sandy exec --detach begins one"});
      co_return kCouldNotStart;
    }
  }
  const auto relay = std::make_shared<Relay>(io, relayed);
  Json header = wire::request("attach");
  header["process"] = number;
  (*client)->relay(relay, std::move(header), {});
  const Json end = co_await relay->run(*client);
  if (relay->detached()) {
    note("left process " + std::to_string(number) + " alone");
    co_return 0;
  }
  if (end.value("error", "") == "no_process") {
    print_error(error_of(end));
    co_return kCouldNotStart;
  }
  const int status = relay->output_error() != 0 ? kCouldNotStart : status_of(end, relayed, {}, 0);
  note_refusals(end);
  co_return status;
}

int attach(const AttachOptions& options) {
  RelayOptions relayed;
  relayed.argv = {"the process"};
  relayed.detachable = true;
  relayed.input = !options.no_input;
  return run_in_loop([&](asio::io_context& io) { return attach(io, options, relayed); });
}

}  // namespace

void add_attach(CLI::App& app, ExitStatus& status) {
  auto* verb = app.add_subcommand("attach", "This terminal for a process of a kept sandbox; Ctrl-P Ctrl-Q leaves it alone");
  auto options = std::make_shared<AttachOptions>();
  verb->add_flag("--no-input", options->no_input, "Standard input is not the process'");
  verb->add_option("sandbox", options->id, "Id or name")->required()->type_name("ID");
  verb->add_option("process", options->process, "Its number; without it, the last one that runs")->type_name("PROCESS");
  verb->footer(kCommandStatuses);
  verb->callback([options, &status] { status.value = attach(*options); });
}

}  // namespace sandy::cli
