// sandy doctor: what this machine can enforce, and how to get the rest.
#include <signal.h>

#include <boost/asio.hpp>
#include <chrono>
#include <cstdio>
#include <memory>

#include "cli/verbs.h"
#include "host/doctor.h"
#include "host/facts.h"
#include "plan/environment.h"
#include "session/planning.h"
#include "session/sandbox.h"

namespace sandy::cli {
namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using wire::Json;

constexpr auto kStartLimit = 6s;          // so that all of doctor ends within about 10 s
constexpr std::uint64_t kCommandLimitMs = 3'000;

// Waits for the end of one request; its output is of no interest.
class EndOfRequest : public session::EventSink {
 public:
  explicit EndOfRequest(asio::io_context& io) : ended_(io, asio::steady_timer::time_point::max()) {}
  void on_event(wire::Frame event) override {
    if (event.ev() != "end") return;
    end_ = std::move(event);
    ended_.cancel();
  }
  asio::awaitable<Json> wait() {
    while (!end_) co_await ended_.async_wait(asio::as_tuple(asio::use_awaitable));
    co_return end_->header;
  }

 private:
  asio::steady_timer ended_;
  std::optional<wire::Frame> end_;
};

Json exec_request() {
  return {{"op", "exec"}, {"argc", 1}, {"shell", false}, {"timeout_ms", kCommandLimitMs}};
}

// The end of one program's run in the sandbox.
asio::awaitable<Json> run_program(asio::io_context& io, session::Sandbox& sandbox, std::string program) {
  auto sink = std::make_shared<EndOfRequest>(io);
  Json header = exec_request();
  std::string payload = program;
  Json lengths = Json::array();
  lengths.push_back(program.size());
  lengths.push_back(0);  // the working directory: the default
  header["args"] = std::move(lengths);
  sandbox.open(std::move(header), std::move(payload), sink);
  co_return co_await sink->wait();
}

std::string milliseconds_since(std::chrono::steady_clock::time_point start) {
  return std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - start).count()) + " ms";
}

// What the run of `program`, "true" or the agent, shows.
void judge(const Json& end, const std::string& program, const std::string& time, host::StartFindings& out) {
  const std::string reason = end.value("reason", end.value("error", std::string("no answer")));
  // Started as a command, the agent finds no socket, and says so by status 1.
  if (reason == "exited" && end.value("code", -1) == (program == "true" ? 0 : 1)) {
    out.detail = "a whole sandbox started and ran `" + program + "` within " + time;
    return;
  }
  out.error = Error{"a command in the sandbox", "`" + program + "` ended with: " + reason + " " + std::to_string(end.value("code", end.value("errno", 0))),
                    "see what it is in the sandbox: sandy run --private-workspace -- sh -c 'command -v true'"};
}

asio::awaitable<void> start_and_run(asio::io_context& io, session::PlannedSandbox planned, host::StartFindings& out) {
  const auto begin = std::chrono::steady_clock::now();
  auto sandbox = co_await session::Sandbox::start(io.get_executor(), std::move(planned), std::nullopt, session::Sandbox::NetworkOptions(), std::nullopt, kStartLimit);
  if (!sandbox) {
    out.error = sandbox.error();
    session::Limits::shutdown();
    co_return;
  }
  std::string program = "true";
  Json end = co_await run_program(io, **sandbox, program);
  // A system without `true` where PATH leads: the agent's own program is in every sandbox.
  if (end.value("reason", "") == "could_not_start" && end.value("code", 0) == 127) {
    program = plan::kAgentPath;
    end = co_await run_program(io, **sandbox, program);
  }
  judge(end, program, milliseconds_since(begin), out);
  out.degraded = (*sandbox)->plan().degraded;
  out.lost_cgroup = out.cgroup.way != plan::CgroupFacts::Way::none && !(*sandbox)->plan().cgroup;
  co_await (*sandbox)->close("doctor has seen enough");
  session::Limits::shutdown();
}

host::StartFindings try_start(const Result<void>& bubblewrap) {
  host::StartFindings out;
  if (!bubblewrap) {
    out.error = bubblewrap.error();
    return out;
  }
  auto policy = session::validate_here(policy::PolicyDraft{});
  auto planned = policy ? session::plan_here(*policy) : Result<session::PlannedSandbox>(std::unexpected(policy.error()));
  if (!planned) {
    out.error = planned.error();
    return out;
  }
  out.degraded = planned->plan.degraded;
  out.cgroup = session::cgroups_here();
  if (const auto facts = host::host_facts()) {
    out.lost_path.emplace();
    plan::sandbox_path(*facts, planned->plan, &*out.lost_path);
  }
  asio::io_context io(1);
  out.error = Error{"the sandbox", "its start was interrupted", "run sandy doctor again"};
  asio::co_spawn(
      io,
      [&]() -> asio::awaitable<void> {
        out.error.reset();
        co_await start_and_run(io, std::move(*planned), out);
      },
      [&](std::exception_ptr exception) {
        // No io.stop(): the thread that removes directories may still give back its hold on `io`.
        if (exception) out.error = Error{"the sandbox", "its start ended with an exception", "run sandy doctor again; if it stays, report it"};
      });
  io.run();
  return out;
}

void print_json(const std::vector<host::Capability>& capabilities) {
  nlohmann::ordered_json out = nlohmann::ordered_json::array();
  for (const auto& capability : capabilities) {
    out.push_back({{"name", capability.name}, {"state", host::word(capability.state)}, {"detail", capability.detail}, {"needs", capability.needs}, {"fix", capability.fix}});
  }
  std::puts(out.dump(2, ' ', false, Json::error_handler_t::replace).c_str());
}

void print_text(const std::vector<host::Capability>& capabilities, bool can_start) {
  for (const auto& capability : capabilities) {
    std::printf("%-8s %s (for: %s)\n           %s\n", host::word(capability.state), capability.name.c_str(), capability.needs.c_str(), capability.detail.c_str());
    if (capability.state != host::CapabilityState::ok) std::printf("           fix: %s\n", capability.fix.c_str());
  }
  std::puts(can_start ? "\nSandboxes can start here." : "\nSandboxes can NOT start here: see `sandbox start` above.");
}

int doctor(bool json) {
  ::signal(SIGPIPE, SIG_IGN);
  const auto bubblewrap = host::examine_bubblewrap();
  const auto start = try_start(bubblewrap.usable);
  const auto capabilities = host::examine_machine(bubblewrap, start);
  if (json) {
    print_json(capabilities);
  } else {
    print_text(capabilities, !start.error);
  }
  return start.error ? 1 : 0;
}

}  // namespace

void add_doctor(CLI::App& app, ExitStatus& status) {
  auto* verb = app.add_subcommand("doctor", "Find out what this machine can enforce, and how to get the rest");
  auto json = std::make_shared<bool>(false);
  verb->add_flag("--json", *json, "As JSON: an array of objects with name, state (ok, limited, missing), detail, needs, fix");
  verb->footer("Exit status: 0 where a sandbox can start, 1 where it can't.");
  verb->callback([json, &status] { status.value = doctor(*json); });
}

}  // namespace sandy::cli
