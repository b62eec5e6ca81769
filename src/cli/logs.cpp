// sandy logs: what a process of a kept sandbox has said.
#include <memory>
#include <string>

#include "cli/command_end.h"
#include "cli/kept_client.h"
#include "cli/verbs.h"

namespace sandy::cli {
namespace {

using wire::Json;

struct LogsOptions {
  std::string id;
  std::uint64_t process = 0, offset = 0;
  bool follow = false;
};

asio::awaitable<int> logs(asio::io_context& io, const LogsOptions& options, const RelayOptions& relayed) {
  auto client = KeptClient::connect(io, options.id);
  if (!client) {
    print_error(client.error());
    co_return 1;
  }
  std::uint64_t number = options.process;
  const auto note_last = [&](wire::Frame event) { number = event.number("process", 0); };
  if (number == 0) (void)co_await (*client)->request(wire::request("processes"), {}, note_last);
  const auto relay = std::make_shared<Relay>(io, relayed);
  Json header = wire::request("attach");
  header["process"] = number;
  header["offset"] = options.offset;
  header["follow"] = options.follow;
  header["hold"] = false;
  (*client)->relay(relay, std::move(header), {});
  const Json end = co_await relay->run(*client);
  if (end.contains("error")) {
    print_error(error_of(end));
    co_return 1;
  }
  co_return relay->output_error() != 0 ? 1 : 0;
}

int logs(const LogsOptions& options) {
  RelayOptions relayed;
  relayed.detachable = true;
  relayed.input = false;
  return run_in_loop([&](asio::io_context& io) { return logs(io, options, relayed); });
}

}  // namespace

void add_logs(CLI::App& app, ExitStatus& status) {
  auto* verb = app.add_subcommand("logs", "The output that is kept of a process of a kept sandbox");
  auto options = std::make_shared<LogsOptions>();
  verb->add_flag("--follow,-f", options->follow, "Until the process ends");
  verb->add_option("--offset", options->offset, "From this byte on, counted from the process' start")->type_name("BYTES");
  verb->add_option("sandbox", options->id, "Id or name")->required()->type_name("ID");
  verb->add_option("process", options->process, "Its number; without it, the last one")->type_name("PROCESS");
  verb->callback([options, &status] { status.value = logs(*options); });
}

}  // namespace sandy::cli
