#include "cli/foreground_command.h"

#include <signal.h>

#include <boost/asio/experimental/awaitable_operators.hpp>
#include <optional>

#include "cli/command_end.h"
#include "cli/outcome_file.h"
#include "cli/verbs.h"
#include "policy/enforcement.h"
#include "session/planning.h"

namespace sandy::cli {
namespace {

using wire::Json;

using namespace asio::experimental::awaitable_operators;

// To a sandbox of this process.
class OwnSandbox : public CommandLink {
 public:
  OwnSandbox(asio::io_context& io, std::shared_ptr<session::Sandbox> sandbox) : io_(io), sandbox_(std::move(sandbox)) {}
  void follow(Json header, std::string payload) override { sandbox_->follow(session::Sandbox::kFirstId, std::move(header), std::move(payload)); }
  void answer(std::uint32_t question, bool allow, bool always) override { asio::co_spawn(io_, sandbox_->answer(question, allow, always), asio::detached); }

 private:
  asio::io_context& io_;
  std::shared_ptr<session::Sandbox> sandbox_;
};

}  // namespace

int run_in_foreground(const policy::SandboxPolicy& policy, const ForegroundOptions& options, const OutcomeFile& outcome) {
  ::signal(SIGPIPE, SIG_IGN);
  const auto could_not_start = [&](const Error& error) {
    print_error(error);
    outcome.write(error, kCouldNotStart);
    return kCouldNotStart;
  };
  session::AuditLog audit;
  if (!options.audit.empty()) {
    auto opened = session::AuditLog::open(options.audit);
    if (!opened) return could_not_start(opened.error());
    audit = std::move(*opened);
  }
  // Never destroyed: it is stopped with work in it, and the thread that removes directories gives back its hold on it at a time of its own.
  static asio::io_context& io = *new asio::io_context(1);
  auto early = session::EarlyStart::before_plan(io.get_executor(), policy);
  auto planned = session::plan_here(policy, {options.policy_file, options.audit});
  if (!planned) {
    early.reset();
    session::Limits::shutdown();
    return could_not_start(planned.error());
  }
  const std::string cwd = planned->plan.cwd;
  int status = kCouldNotStart;
  asio::co_spawn(
      io,
      [&]() -> asio::awaitable<void> {
        auto relay = std::make_shared<Relay>(io, options);
        session::Sandbox::NetworkOptions network;
        network.audit = std::move(audit);
        if (options.ask) network.on_question = [relay](std::uint32_t number, const std::string& target) { relay->ask(number, target); };
        session::Sandbox::Request request{relay->request_header(), relay->request_payload(), relay, true};
        auto sandbox = co_await session::Sandbox::start(io.get_executor(), std::move(*planned), std::move(request), std::move(network), std::nullopt,
                                                       session::Sandbox::kStartLimit, std::move(early));
        if (!sandbox) {
          could_not_start(sandbox.error());
          co_await session::Network::shutdown();
          session::Limits::shutdown();
          co_return;
        }
        if (const auto unenforced = policy::unenforced_words((*sandbox)->plan().degraded); policy->limits.best_effort && !unenforced.empty()) note(unenforced);
        for (const auto& [host_port, port] : (*sandbox)->published()) note("port " + std::to_string(port) + " of the sandbox is 127.0.0.1:" + std::to_string(host_port));
        const Json end = co_await relay->run(std::make_shared<OwnSandbox>(io, *sandbox));
        status = relay->output_error() != 0 ? kCouldNotStart : status_of(end, options, cwd, relay->cancelled_by());
        note_refusals(end);
        // Both at a time: the sandbox leaves its network first.
        co_await ((*sandbox)->close("the command has ended") && session::Network::shutdown());
        session::Limits::shutdown();
        outcome.write(end, status, (*sandbox)->plan().degraded);
      },
      [&](std::exception_ptr failure) {
        // Values of another type than the protocol's: nlohmann::json throws.
        if (failure) print_error({"the sandbox", "its agent broke the protocol", ""});
        io.stop();
      });
  io.run();
  return status;
}

}  // namespace sandy::cli
