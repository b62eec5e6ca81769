#include "verify/verification.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/asio.hpp>
#include <chrono>
#include <memory>
#include <optional>

#include "host/programs.h"
#include "host/state_directory.h"
#include "session/network.h"
#include "session/planning.h"
#include "verify/special_trials.h"

namespace sandy::verify {
namespace {

Result<std::string> make_nonce() {
  std::array<unsigned char, 12> bytes;
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) return fail("random bytes", errno_text(errno));
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string out;
  for (const unsigned char byte : bytes) (out += kDigits[byte >> 4]) += kDigits[byte & 15];
  return out;
}

Result<std::string> read_program(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return fail(printable(path), errno_text(errno));
  std::string out;
  std::array<char, 65'536> buffer;
  while (true) {
    const ssize_t size = ::read(fd.get(), buffer.data(), buffer.size());
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return fail(printable(path), errno_text(errno));
    if (size == 0) return out;
    out.append(buffer.data(), static_cast<std::size_t>(size));
  }
}

class Verification {
 public:
  Verification(Options options, std::string program, std::string program_bytes, std::string nonce, asio::io_context& io)
      : options_(std::move(options)), program_bytes_(std::move(program_bytes)), nonce_(std::move(nonce)), home_(session::this_caller().home),
        outside_(std::move(program), nonce_), io_(io) {
    canaries_.emplace(outside_.program(), nonce_, home_);
  }

  // All of it that is on this machine is removed, also from the workspace, and then this process ends.
  asio::awaitable<void> end_early(int status) {
    asio::steady_timer timer(io_);
    for (int turn = 0; starting_ && turn < 500; ++turn) {
      timer.expires_after(std::chrono::milliseconds(20));
      co_await timer.async_wait(asio::use_awaitable);
    }
    const auto attacked = attacked_;
    if (attacked) co_await attacked->close();
    canaries_.reset();
    ::_exit(status);
  }

  asio::awaitable<Result<std::vector<Finding>>> run(std::vector<std::string>& degraded) {
    std::vector<Finding> out;
    const auto state = host::StateDirectory::open();
    if (!state) co_return std::unexpected(state.error());
    state_directory_ = state->path();
    options_.draft.limits.wall_time.reset();
    options_.draft.network.publish.clear();
    if (!options_.names_workspace) {
      auto workspace = canaries_->make_workspace();
      if (!workspace) co_return std::unexpected(workspace.error());
      options_.draft.filesystem.workspace.path = policy::Text{*workspace, "the workspace of sandy verify", true};
      options_.draft.filesystem.workspace.mount.reset();
    }
    const auto policy = session::validate_here(options_.draft);
    if (!policy) co_return std::unexpected(policy.error());
    degraded = policy->degraded();
    const auto attacked = co_await attack_as_it_is(*policy, out);
    if (!attacked) co_return std::unexpected(attacked.error());
    if (wants(AttackClass::network) || wants(AttackClass::host_side)) co_await attack_with_a_list(out);
    co_return out;
  }

  asio::awaitable<void> shut_down() {
    co_await session::Network::shutdown();
    session::Limits::shutdown();
  }

 private:
  // attacked_, which an early end closes.
  asio::awaitable<Result<void>> start(session::PlannedSandbox planned) {
    starting_ = true;
    auto started = co_await Sandboxed::start(io_.get_executor(), std::move(planned), program_bytes_, nonce_);
    starting_ = false;
    if (!started) co_return std::unexpected(started.error());
    attacked_ = std::move(*started);
    co_return Result<void>();
  }

  bool wants(AttackClass attack_class) const { return options_.classes.contains(attack_class); }

  Setting setting(const policy::PolicyFields& policy, const plan::SandboxPlan& plan) {
    return {policy, plan, *canaries_, outside_, nonce_, home_, options_.policy_file, state_directory_, !options_.names_workspace, options_.classes};
  }

  asio::awaitable<Result<void>> attack_as_it_is(const policy::SandboxPolicy& policy, std::vector<Finding>& out) {
    auto planned = session::plan_here(policy, {options_.policy_file});
    if (!planned) co_return std::unexpected(planned.error());
    canaries_->make_later_sockets();
    const plan::SandboxPlan plan = planned->plan;
    Setting setting = this->setting(policy.fields(), plan);
    auto all = trials(setting);
    if (wants(AttackClass::network)) {
      auto network = network_trials(setting);
      all.insert(all.begin(), std::make_move_iterator(network.begin()), std::make_move_iterator(network.end()));
    }
    const std::string mounts = own_mounts();
    auto started = co_await start(std::move(*planned));
    if (!started) co_return std::unexpected(started.error());
    Sandboxed& sandbox = *attacked_;
    co_await attempt_all(all, sandbox, out);
    Control daemon;
    if (wants(AttackClass::processes)) co_await survivor_trials(setting, sandbox, out);
    if (wants(AttackClass::host_side)) co_await transfer_trials(setting, sandbox, out);
    if (wants(AttackClass::processes) || wants(AttackClass::host_side)) daemon = co_await start_daemon(setting, sandbox);
    if (wants(AttackClass::limits)) co_await limit_trials(setting, sandbox, out);
    const std::string id = sandbox.sandbox().id();
    co_await sandbox.close();
    attacked_.reset();
    if (wants(AttackClass::processes) || wants(AttackClass::host_side)) {
      for (auto& finding : survivors(setting, daemon, id, mounts)) {
        if (wants(finding.attack.in)) out.push_back(std::move(finding));
      }
    }
    co_return Result<void>();
  }

  // The same policy with a network in which one port of this machine is listed for us, and what the policy itself lists.
  asio::awaitable<void> attack_with_a_list(std::vector<Finding>& out) {
    policy::PolicyDraft draft = options_.draft;
    draft.network.mode = policy::Text{"allowlist", "sandy verify"};
    if (canaries_->allowed) draft.network.allow_private.push_back(policy::Text{std::string(policy::kThisMachine) + ":" + std::to_string(canaries_->allowed->port()), "sandy verify"});
    const auto policy = session::validate_here(draft);
    auto planned = policy ? session::plan_here(*policy, {options_.policy_file}) : Result<session::PlannedSandbox>(std::unexpected(policy.error()));
    if (!planned) {
      out.push_back({{"list", AttackClass::network, {1}, "get past a list of what can be reached"}, Verdict::untried, shown(planned.error().text()), ""});
      co_return;
    }
    const plan::SandboxPlan plan = planned->plan;
    Setting setting = this->setting(policy->fields(), plan);
    auto started = co_await start(std::move(*planned));
    if (!started) {
      const Control none{false, started.error().text()};
      for (const auto& trial : allowlist_trials(setting, none)) {
        if (wants(trial.attack.in)) out.push_back({trial.attack, Verdict::untried, shown(none.why), ""});
      }
      co_return;
    }
    Sandboxed& sandbox = *attacked_;
    const Inside reached = co_await sandbox.attempt(allowed_connection(setting));
    Control control{canaries_->allowed && canaries_->allowed->visited(), "what is listed is not reached either: "};
    control.why += reached.report.word == AttemptReport::Word::none ? reached.end : shown(reached.report.detail);
    auto all = allowlist_trials(setting, control);
    std::erase_if(all, [&](const Trial& trial) { return !wants(trial.attack.in); });
    co_await attempt_all(all, sandbox, out);
    co_await sandbox.close();
    attacked_.reset();
  }

  asio::awaitable<void> attempt_all(std::vector<Trial>& all, Sandboxed& sandbox, std::vector<Finding>& out) {
    for (Trial& trial : all) {
      if (trial.arrived) trial.arrived();
      const Answer answer = co_await sandbox.run(trial.words);
      Inside inside = sandbox.judged(answer);
      if (trial.look) trial.look(answer.end, inside);
      if (trial.arrived && trial.arrived()) inside.arrived = true;
      auto judgement = judge(trial.control, inside, trial.proof);
      Finding finding{trial.attack, judgement.verdict, std::move(judgement.detail), ""};
      if (finding.verdict == Verdict::fail && trial.allowed_by) finding.allowed_by = trial.allowed_by();
      out.push_back(std::move(finding));
    }
  }

  Options options_;
  std::string program_bytes_, nonce_, home_, state_directory_;
  Outside outside_;
  asio::io_context& io_;
  std::optional<Canaries> canaries_;
  std::shared_ptr<Sandboxed> attacked_;  // now
  bool starting_ = false;                // one
};

}  // namespace

Result<Report> verify(Options options) {
  const auto began = std::chrono::steady_clock::now();
  auto nonce = make_nonce();
  if (!nonce) return std::unexpected(nonce.error());
  auto program = host::own_program("sandy-attack");
  if (!program) return std::unexpected(program.error());
  auto bytes = read_program(*program);
  if (!bytes) return std::unexpected(bytes.error());
  // Never destroyed: it is stopped with work in it, and the thread that removes directories gives back its hold on it at a time of its own.
  static asio::io_context& io = *new asio::io_context(1);
  // Before anything is made that has to be removed.
  asio::signal_set signals(io, SIGINT, SIGTERM, SIGHUP);
  Verification verification(std::move(options), std::move(*program), std::move(*bytes), std::move(*nonce), io);
  signals.async_wait([&](const boost::system::error_code& error, int number) {
    if (!error) asio::co_spawn(io, verification.end_early(128 + number), asio::detached);
  });
  Report report;
  Result<std::vector<Finding>> found = fail("the attacks", "did not end");
  asio::co_spawn(
      io,
      [&]() -> asio::awaitable<void> {
        found = co_await verification.run(report.degraded);
        co_await verification.shut_down();
      },
      [&](std::exception_ptr failure) {
        // Values of another type than the protocol's: nlohmann::json throws.
        if (failure) found = fail("the sandbox", "its agent broke the protocol");
        io.stop();
      });
  io.run();
  if (!found) return std::unexpected(found.error());
  report.findings = std::move(*found);
  std::ranges::stable_sort(report.findings, {}, [](const Finding& finding) { return finding.attack.in; });
  report.milliseconds = static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - began).count());
  return report;
}

}  // namespace sandy::verify
