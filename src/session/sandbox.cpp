#include "session/sandbox.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "host/children.h"
#include "host/diagnose.h"
#include "host/unix_sockets.h"
#include "policy/json_reader.h"
#include "policy/network.h"
#include "session/command_result.h"
#include "session/wire/configuration.h"

namespace sandy::session {
namespace {

using namespace std::chrono_literals;
using namespace asio::experimental::awaitable_operators;

constexpr auto kNoError = asio::as_tuple(asio::use_awaitable);
constexpr auto kExitLimit = 2s;    // from the agent's end to bubblewrap's
constexpr auto kOrphanPatience = 100ms;
constexpr std::size_t kMaxMessages = 8'192;
constexpr std::size_t kMaxDenials = 50;  // that a command's end names
constexpr std::size_t kMaxDenialBytes = 10'000;
constexpr std::size_t kQueueSlack = 4 * wire::kWindowBytes;  // headers, frames without data

// Where directories are removed; started with the first one.
asio::thread_pool& removal_pool() {
  static asio::thread_pool pool(1);
  return pool;
}

// The first words of an exec request, as far as a line of a log has use for them.
std::string command_words(const wire::Json& header, std::string_view payload) {
  constexpr std::size_t kShown = 200;
  std::string out;
  const auto lengths = header.find("args");
  const auto count = header.find("argc");
  std::size_t left = count != header.end() && count->is_number_unsigned() ? count->get<std::size_t>() : 1;
  for (auto length = lengths == header.end() ? wire::Json::const_iterator() : lengths->begin(); lengths != header.end() && length != lengths->end() && left > 0; ++length, --left) {
    if (!length->is_number_unsigned()) break;
    const auto word = payload.substr(0, length->get<std::size_t>());
    out += (out.empty() ? "" : " ") + printable(word.substr(0, kShown));
    payload.remove_prefix(word.size());
    if (out.size() > kShown) break;
  }
  if (out.size() > kShown) out.resize(kShown);
  return out;
}

}  // namespace

Sandbox::Sandbox(asio::any_io_executor executor, PlannedSandbox planned, std::string id)
    : executor_(executor),
      planned_(std::move(planned)),
      id_(std::move(id)),
      ended_(executor),
      closed_(executor, asio::steady_timer::time_point::max()),
      life_(executor) {}

asio::awaitable<Result<std::shared_ptr<Sandbox>>> Sandbox::start(asio::any_io_executor executor, PlannedSandbox planned, std::optional<Request> first,
                                                                 NetworkOptions network_options, std::optional<KeepOptions> keep, std::chrono::seconds limit,
                                                                 std::optional<EarlyStart> early) {
  const bool resumes = keep && !keep->resumed.empty();
  const auto place = resumes ? host::StatePlace::adopted : keep ? host::StatePlace::always : host::StatePlace::as_planned;
  std::string id;
  if (resumes) id = keep->resumed;
  // (One from before the plan has its limits, as they come from the same policy and host; else it is given up.)
  if (planned.plan.cgroup && (!early || resumes || early->cgroup->plan() != *planned.plan.cgroup)) {
    auto begun = EarlyStart::begin(executor, *planned.plan.cgroup, planned.plan.io_path, id);
    if (!begun) co_return std::unexpected(begun.error());
    early = std::move(*begun);
  }
  if (!planned.plan.cgroup) early.reset();
  if (early) {
    early->cgroup->advance();
    id = early->id;
  }
  if (id.empty()) id = new_id();
  std::shared_ptr<Sandbox> self(new Sandbox(executor, std::move(planned), std::move(id)));
  if (self->planned_.plan.network) {
    // Before the sandbox: the two start at the same time.
    auto network = Network::shared(executor);
    if (!network) co_return std::unexpected(network.error());
    self->network_ = std::move(*network);
    if (network_options.on_question) self->planned_.plan.network->rules.emplace_back("ask");
    self->on_question_ = std::move(network_options.on_question);
    self->audit_ = std::move(network_options.audit);
    if (auto listening = self->listen_for_published(); !listening) co_return std::unexpected(listening.error());
  }
  std::unique_ptr<host::WaitingLauncher> waiting;
  if (early) waiting = std::move(early->launcher);
  auto launched = host::launch(self->planned_.plan, self->id_, self->planned_.seccomp, std::move(waiting), place);
  if (!launched) co_return std::unexpected(launched.error());
  self->launched_ = std::move(*launched);
  self->ended_.assign(self->launched_.pidfd.release());
  if (early) {
    if (auto entered = co_await self->enter_cgroup(std::move(early->cgroup)); !entered) {
      // It ends by itself.
      if (self->launched_.waiting) self->launched_.waiting->dismiss();
      self->launched_.agent.reset();
      co_await self->wait_for_exit(kExitLimit);
      host::remove_placeholders(self->planned_.plan.hidden_sockets);
      co_return std::unexpected(entered.error());
    }
  }
  self->channel_ = wire::Channel::make(executor, std::move(self->launched_.agent), wire::kMaxReplyPayload);
  self->post_configuration(first && first->only);
  const auto open_first = [&] {
    if (first) self->add(std::move(first->header), std::move(first->payload), std::move(first->sink));
  };
  // With a network, nothing runs before that is there; and what bubblewrap has left for a socket that went away, no command sees.
  const bool at_once = !self->network_ && self->planned_.plan.hidden_sockets.empty();
  if (at_once) open_first();
  auto answered = co_await self->handshake(limit);
  Result<void> network_ready;
  if (self->network_) network_ready = co_await self->network_->ready();
  if (answered && network_ready) answered = self->join_network();
  if (!network_ready) {
    self->channel_->close();
    co_await self->wait_for_exit(kExitLimit);
    host::remove_placeholders(self->planned_.plan.hidden_sockets);
    co_return std::unexpected(network_ready.error());
  }
  if (!answered) {
    self->channel_->close();
    co_await self->wait_for_exit(kExitLimit);
    const std::string messages = co_await self->read_messages();
    host::remove_placeholders(self->planned_.plan.hidden_sockets);
    co_return std::unexpected(host::explain_start_failure(self->planned_.plan, messages, answered.error()));
  }
  self->launched_.mark.remove();
  host::remove_placeholders(self->planned_.plan.hidden_sockets);
  if (!at_once) open_first();
  self->alive_ = true;
  asio::co_spawn(executor, [self] { return self->read_events(); }, asio::detached);
  if (self->planned_.plan.wall_time_ms != 0) asio::co_spawn(executor, [self] { return self->limit_life(); }, asio::detached);
  co_return self;
}

asio::awaitable<Result<void>> Sandbox::enter_cgroup(std::unique_ptr<cgroup::SandboxCgroup> group) {
  auto& plan = planned_.plan;
  auto entered = co_await group->enter();
  const bool runs = bubblewrap_runs();  // else what ended it is the cause, and says so
  if (entered && runs) {
    // Now it is where it is to be, and becomes bubblewrap, beside whose start the rest is made.
    if (auto given = launched_.waiting->give(std::move(launched_.orders)); !given) co_return given;
    launched_.waiting.reset();
    entered = group->make_commands();
  }
  if (entered && runs) {
    limits_ = Limits::make(executor_, std::move(group));
    co_return Result<void>();
  }
  if (runs) {
    // What was set by hand is not left out in silence; the defaults are, and stand in `degraded`.
    const auto& limits = planned_.policy->limits;
    const auto by_hand = plan::keys_of_set(limits);
    if (!by_hand.empty() && !limits.best_effort) co_return fail(by_hand.front(), entered.error().what + ": " + entered.error().why, entered.error().fix);
    const auto& lost = plan.cgroup->limits;
    for (auto& key : plan::keys_of_set(lost)) plan.degraded.push_back(std::move(key));
    plan.watched_memory = lost.memory.value_or(plan.watched_memory);
    plan.watched_pids = lost.pids.value_or(plan.watched_pids);
  }
  plan.cgroup.reset();
  if (launched_.waiting && runs) {
    if (auto given = launched_.waiting->give(std::move(launched_.orders)); !given) co_return given;
  }
  launched_.waiting.reset();
  co_return Result<void>();
}

void Sandbox::post_configuration(bool one_command) {
  const auto& plan = planned_.plan;
  wire::Configuration configuration;
  configuration.workspace = plan.workspace;
  configuration.home = plan.home;
  configuration.cwd = plan.cwd;
  configuration.root_names = plan.root_names;
  configuration.environment = plan.environment;
  configuration.workspace_names = plan.root == plan::RootKind::private_directory;
  configuration.open_files = plan.open_files;
  configuration.file_size = plan.file_size;
  configuration.watched_memory = plan.watched_memory;
  configuration.watched_pids = plan.watched_pids;
  configuration.command_groups = limits_ != nullptr;
  configuration.one_command = one_command;
  auto frame = wire::encode_configuration(configuration);
  channel_->post(frame.header, frame.payload);
}

Result<void> Sandbox::listen_for_published() {
  for (const auto& port : planned_.plan.network->publish) {
    auto listener = host::listen_on_loopback(port.host_port);
    if (!listener) return std::unexpected(listener.error());
    published_[listener->port] = port.port;
    published_listeners_.push_back(std::move(*listener));
  }
  return {};
}

Result<void> Sandbox::join_network() {
  if (!network_) return {};
  auto sockets = receive_sockets(launched_.network);
  launched_.network.reset();
  if (sockets.listeners.empty()) return fail("sandy-launch", "sent no listening sockets");
  network_id_ = network_->add(std::move(sockets), planned_.plan.network->rules, [weak = weak_from_this()](const wire::Frame* event) {
    if (const auto self = weak.lock()) self->on_network(event);
  });
  for (auto& listener : published_listeners_) network_->publish(network_id_, std::move(listener.socket), published_.at(listener.port));
  published_listeners_.clear();
  return {};
}

void Sandbox::on_network(const wire::Frame* event) {
  if (event == nullptr) {
    // Nothing leads out of the sandbox any more, but what runs in it would wait for that in vain.
    if (end_reason_.empty()) end_reason_ = "the sandbox was ended: its network proxy is gone";
    asio::co_spawn(executor_, [self = shared_from_this()] { return self->close({}); }, asio::detached);
    return;
  }
  if (event->ev() == "expired") {
    const auto number = static_cast<std::uint32_t>(event->number("number", 0));
    if (questions_.erase(number) > 0 && on_question_) on_question_(number, std::string());
    return;
  }
  if (event->ev() == "question") {
    const auto number = static_cast<std::uint32_t>(event->number("number", 0));
    if (!on_question_) return network_->answer(network_id_, number, false);
    questions_[number] = event->word("target");
    return on_question_(number, questions_[number]);
  }
  if (audit_) write_down(*event);
  const auto verdict = event->word("verdict");
  if (verdict != "denied" && verdict != "failed") return;
  Denial denial;
  denial.target = event->word("target");
  denial.reason = event->word("reason");
  denial.failed = verdict == "failed";
  for (auto& [id, open] : open_) {
    if (!open.is_command || std::ranges::find(open.denials, denial) != open.denials.end()) continue;
    // A header has an end (wire::kMaxHeaderBytes), and an escaped character takes up to six bytes of it.
    const std::size_t bytes = denial.target.size() + denial.reason.size();
    if (open.denials.size() < kMaxDenials && open.denial_bytes + bytes <= kMaxDenialBytes) {
      open.denial_bytes += bytes;
      open.denials.push_back(denial);
    } else {
      ++open.more_denials;
    }
  }
}

void Sandbox::write_down(const wire::Frame& event) {
  wire::Json line = wire::Json::object();
  for (const char* key : {"verdict", "target", "protocol", "reason", "address", "bytes_up", "bytes_down", "ms"}) {
    if (const auto found = event.header.find(key); found != event.header.end()) line[key] = *found;
  }
  line["sandbox"] = id_;
  auto& commands = line["commands"] = wire::Json::array();
  for (const auto& [id, open] : open_) {
    if (open.is_command) commands.push_back(open.words);
  }
  if (audit_.append(std::move(line))) return;
  // What happens unseen must not happen.
  if (end_reason_.empty()) end_reason_ = "the sandbox was ended: its audit log can't be written";
  asio::co_spawn(executor_, [self = shared_from_this()] { return self->close({}); }, asio::detached);
}

void Sandbox::set_on_question(OnQuestion on_question, const void* owner) {
  if (!on_question && owner != asked_) return;  // somebody else is asked by now
  on_question_ = std::move(on_question);
  asked_ = owner;
  if (on_question_) {
    for (const auto& [number, target] : questions_) on_question_(number, target);
  } else if (network_) {
    for (const auto& [number, target] : std::exchange(questions_, {})) network_->answer(network_id_, number, false);
  }
}

asio::awaitable<void> Sandbox::answer(std::uint32_t question, bool allow, bool always) {
  auto self = shared_from_this();
  const auto found = questions_.find(question);
  if (found == questions_.end()) co_return;
  std::vector<std::string> rules;
  rules.push_back(found->second);
  questions_.erase(found);
  if (allow && always) co_await add_rules("allow", std::move(rules));
  network_->answer(network_id_, question, allow);
}

asio::awaitable<Result<void>> Sandbox::add_rules(std::string list, std::vector<std::string> rules) {
  if (!network_) co_return fail("network", "the sandbox has none", "make it with network.mode \"allowlist\"");
  policy::NetworkDraft draft;
  draft.mode = policy::Text{"allowlist", "network.mode"};
  auto& target = list == "deny" ? draft.deny : draft.allow;
  for (auto& rule : rules) target.push_back({std::move(rule), list});
  const auto checked = policy::check_network(draft);
  if (!checked) co_return std::unexpected(checked.error());
  // Here first: of two changes at a time, the later one must not take the earlier one's denial back.
  auto& lines = planned_.plan.network->rules;
  auto added = plan::rule_lines(*checked);
  if (lines.size() + added.size() > policy::kMaxRules) co_return fail("network", "more than " + std::to_string(policy::kMaxRules) + " rules");
  for (const auto& line : added) {
    const std::string opposite = (list == "deny" ? "allow" : "deny") + line.substr(line.find(' '));
    std::erase(lines, opposite);
    if (std::ranges::find(lines, line) == lines.end()) lines.push_back(line);
  }
  const bool done = co_await network_->set_rules(network_id_, lines);
  if (!done) co_return fail("network", "the proxy is gone, or has not taken the rules");
  co_return Result<void>();
}

asio::awaitable<Result<void>> Sandbox::set_limits(policy::Limits limits) {
  if (!limits_) co_return fail("limits", "this sandbox has no control group", cgroups_here().fix);
  const auto& here = cgroups_here();
  const std::map<std::string, bool> can{{"limits.memory", here.memory}, {"limits.swap", here.swap},  {"limits.cpus", here.cpus},
                                        {"limits.pids", here.pids},     {"limits.io_read", here.io}, {"limits.io_write", here.io}};
  for (const auto& key : plan::keys_of_set(limits)) {
    if (!can.at(key)) co_return fail(key, here.why, here.fix);
  }
  const auto limited = limits_;
  auto done = co_await limited->group().set_limits(limits);
  if (done) planned_.plan.cgroup = limited->group().plan();
  co_return done;
}

std::optional<cgroup::Usage> Sandbox::usage() const {
  if (!limits_) return {};
  return limits_->group().usage();
}

asio::awaitable<Result<void>> Sandbox::handshake(std::chrono::seconds start_limit) {
  asio::steady_timer limit(executor_, start_limit);
  // Bubblewrap's end too: where it is killed, a child of its may hold the agent's socket, and wait for ever.
  auto outcome = co_await (channel_->read() || limit.async_wait(kNoError) || ended_.async_wait(asio::posix::descriptor_base::wait_read, kNoError));
  // Asio also wakes who waits for a descriptor that took the place of one that was just closed, as a bus that ended: it runs.
  while (outcome.index() == 2 && bubblewrap_runs()) {
    outcome = co_await (channel_->read() || limit.async_wait(kNoError) || ended_.async_wait(asio::posix::descriptor_base::wait_read, kNoError));
  }
  if (outcome.index() == 1) {
    ::kill(launched_.pid, SIGKILL);
    co_return fail("sandbox", "did not answer within " + std::to_string(start_limit.count()) + " s");
  }
  if (outcome.index() == 2) co_return fail("bubblewrap", "ended before the sandbox was ready");
  auto& reply = std::get<0>(outcome);
  if (!reply) co_return std::unexpected(reply.error());
  // The agent ends with bubblewrap, but not if that had ended before the agent was there to ask for it.
  if (!bubblewrap_runs()) co_return fail("bubblewrap", "ended before the sandbox was ready");
  if (reply->ev() != "end" || reply->number("version", 0) != wire::kProtocolVersion) co_return fail("sandy-agent", "answered with another protocol version");
  co_return Result<void>();
}

bool Sandbox::bubblewrap_runs() {
  siginfo_t info{};
  return ::waitid(P_PIDFD, static_cast<id_t>(ended_.native_handle()), &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == 0;
}

std::uint32_t Sandbox::open(wire::Json header, std::string payload, std::shared_ptr<EventSink> sink) {
  if (!alive()) {
    const std::uint32_t id = next_id_++;
    wire::Frame end;
    end.header = {{"id", id}, {"ev", "end"}, {"error", "no_sandbox"}, {"detail", end_reason_}};
    asio::post(executor_, [sink, end]() mutable { sink->on_event(std::move(end)); });
    return id;
  }
  return add(std::move(header), std::move(payload), std::move(sink));
}

std::uint32_t Sandbox::add(wire::Json header, std::string payload, std::shared_ptr<EventSink> sink) {
  while (next_id_ == 0 || open_.contains(next_id_)) ++next_id_;
  const std::uint32_t id = next_id_++;
  header["id"] = id;
  Open open;
  open.sink = std::move(sink);
  const auto op = header.find("op");
  open.is_command = op != header.end() && *op == "exec";
  if (open.is_command && audit_) open.words = command_words(header, payload);
  open.gate.note_request(payload.size());
  if (open.is_command && limits_) limits_->begin(id);
  open_[id] = std::move(open);
  std::vector<std::pair<wire::Json, std::string>> frames;
  frames.emplace_back(std::move(header), std::move(payload));
  channel_->post_all(std::move(frames));
  return id;
}

void Sandbox::follow(std::uint32_t id, wire::Json header, std::string payload) {
  const auto it = open_.find(id);
  if (it == open_.end() || !alive()) return;
  const auto op = header.find("op");
  if (op != header.end() && *op == "credit") {
    const auto bytes = header.find("bytes");
    if (bytes != header.end() && bytes->is_number_unsigned()) it->second.gate.give_back(bytes->get<std::uint64_t>());
  } else if (op != header.end() && (*op == "data" || *op == "drain")) {
    it->second.gate.note_sent(payload.size());
  }
  header["id"] = id;
  std::vector<std::pair<wire::Json, std::string>> frames;
  frames.emplace_back(std::move(header), std::move(payload));
  channel_->post_all(std::move(frames));
}

void Sandbox::abandon(std::uint32_t id) {
  const auto it = open_.find(id);
  if (it == open_.end()) return;
  if (alive() && channel_->queued_bytes() > 0) ended_input_ += it->second.gate.not_credited();
  open_.erase(it);
  if (alive()) channel_->post({{"id", id}, {"op", "cancel"}});
}

asio::awaitable<void> Sandbox::read_events() {
  auto self = shared_from_this();
  while (alive_) {
    auto event = co_await channel_->read();
    if (!event) break;
    // What was refused to the command was told by the proxy before the command heard of it, but to another socket.
    if (wants_denials(*event)) co_await network_->sync();
    if (limits_ && limits_->take(*event, *channel_)) continue;
    // Of a command that nobody asks about any more.
    if (limits_ && event->ev() == "end" && !open_.contains(event->id)) limits_->finish(event->id, event->header);
    dispatch(std::move(*event));
  }
  alive_ = false;
  if (end_reason_.empty()) end_reason_ = "the sandbox ended: its agent is gone";
  fail_open(end_reason_);
  if (!closing_) co_await close(end_reason_);
}

bool Sandbox::wants_denials(const wire::Frame& event) const {
  if (!network_ || event.ev() != "end") return false;
  const auto found = open_.find(event.id);
  return found != open_.end() && found->second.is_command;
}

void Sandbox::tell_denials(const Open& command, wire::Json& end) {
  if (command.denials.empty()) return;
  auto& list = end["denials"] = wire::Json::array();
  for (const auto& denial : command.denials) {
    wire::Json entry = wire::Json::object();
    entry["target"] = denial.target;
    entry["reason"] = denial.reason;
    if (denial.failed) entry["failed"] = true;
    list.push_back(std::move(entry));
  }
  if (command.more_denials > 0) end["more_denials"] = command.more_denials;
}

// Whether it gives credit for, or ends, what it has not even read: with such an agent, what waits for it here would have no bound.
bool Sandbox::answers_unread(const wire::Frame& event, const EventGate& gate) {
  if (event.ev() != "credit" && event.ev() != "end") return false;
  const auto queued = channel_->queued_bytes();
  // Of a request that has ended, data may still be on its way until nothing is.
  if (queued == 0) ended_input_ = 0;
  if (event.ev() == "end" && queued > 0) ended_input_ += gate.data_not_credited();
  if (queued <= kQueueSlack) return false;
  std::size_t may_wait = ended_input_ + kQueueSlack;
  for (const auto& [id, open] : open_) {
    if (id != event.id || event.ev() != "end") may_wait += open.gate.not_credited();
  }
  return queued > may_wait;
}

void Sandbox::dispatch(wire::Frame event) {
  const auto it = open_.find(event.id);
  if (it == open_.end()) return;  // ended or abandoned
  const auto sink = it->second.sink;
  if (!it->second.gate.admit(event) || answers_unread(event, it->second.gate)) {
    end_reason_ = "the sandbox was ended: its agent sent what it may not";
    alive_ = false;
    channel_->close();
    return;
  }
  if (event.ev() == "end") {
    if (it->second.is_command) {
      event.header = command_result(event.header);
      if (limits_) limits_->finish(event.id, event.header);
      tell_watched_limit(planned_.plan.watched_memory, event.header);
      tell_denials(it->second, event.header);
    } else if (event.header.dump().size() > wire::kMaxHeaderBytes) {
      // (Numbers may be longer when they are written again.)
      event.header = {{"id", event.id}, {"ev", "end"}, {"error", "io"}, {"detail", "the sandbox's agent said too much"}};
    }
    open_.erase(it);
  }
  sink->on_event(std::move(event));
}

void Sandbox::fail_open(const std::string& reason) {
  auto open = std::exchange(open_, {});
  for (auto& [id, entry] : open) {
    wire::Frame end;
    end.id = id;
    end.header = {{"id", id}, {"ev", "end"}, {"error", "no_sandbox"}, {"detail", reason}};
    if (timed_out_) end.header["wall_time"] = true;
    entry.sink->on_event(std::move(end));
  }
}

asio::awaitable<std::string> Sandbox::read_messages() {
  std::string out;
  if (!launched_.messages) co_return out;
  asio::posix::stream_descriptor pipe(executor_, launched_.messages.release());
  asio::steady_timer limit(executor_, kExitLimit);
  std::array<char, 4096> buffer;
  while (out.size() < kMaxMessages) {
    auto read = co_await (pipe.async_read_some(asio::buffer(buffer), kNoError) || limit.async_wait(kNoError));
    if (read.index() == 1) break;
    const auto [error, n] = std::get<0>(read);
    if (error || n == 0) break;
    out.append(buffer.data(), n);
  }
  co_return out;
}

asio::awaitable<bool> Sandbox::wait_for_exit(std::chrono::milliseconds limit) {
  if (launched_.pid < 0) co_return true;
  asio::steady_timer timer(executor_, limit);
  auto waited = co_await (ended_.async_wait(asio::posix::descriptor_base::wait_read, kNoError) || timer.async_wait(kNoError));
  const bool in_time = waited.index() == 0;
  if (!in_time) {
    // bubblewrap's end takes its sandbox along: the agent asked for that, and it is the PID namespace's first process.
    ::kill(launched_.pid, SIGKILL);
    co_await ended_.async_wait(asio::posix::descriptor_base::wait_read, kNoError);
  }
  int status = 0;
  while (::waitpid(launched_.pid, &status, 0) < 0 && errno == EINTR) {}
  host::forget_child(launched_.pid);
  launched_.pid = -1;
  boost::system::error_code ignored;
  ended_.close(ignored);
  if (WIFSIGNALED(status)) host::end_orphans(kOrphanPatience);
  co_return in_time;
}

asio::awaitable<void> Sandbox::limit_life() {
  auto self = shared_from_this();
  life_.expires_after(std::chrono::milliseconds(planned_.plan.wall_time_ms));
  const auto [error] = co_await life_.async_wait(kNoError);
  if (error || !alive_) co_return;
  timed_out_ = true;
  co_await close("the sandbox's time limit (limits.wall_time) was reached");
}

asio::awaitable<void> Sandbox::wait_closed() {
  auto self = shared_from_this();
  while (!gone_) co_await closed_.async_wait(kNoError);
}

asio::awaitable<void> Sandbox::close(std::string reason) {
  auto self = shared_from_this();
  if (closing_) {
    // Somebody else closes it: wait for that.
    co_await wait_closed();
    co_return;
  }
  closing_ = true;
  if (end_reason_.empty()) end_reason_ = std::move(reason);
  alive_ = false;
  life_.cancel();
  channel_->close();  // the agent ends, and it is pid 1
  if (const auto on_question = std::exchange(on_question_, {})) on_question(kNoMoreQuestions, {});
  fail_open(end_reason_);
  if (network_ && network_id_ != 0) {
    co_await (network_->remove(network_id_) && wait_for_exit(kExitLimit));
  } else {
    co_await wait_for_exit(kExitLimit);
  }
  if (limits_) limits_->close();
  limits_.reset();
  if (launched_.directory) {
    // A workspace may hold a hundred thousand files: other sandboxes are served meanwhile.
    // (A variable: g++ 12 destroys a lambda in a co_await's own expression twice.)
    auto remove = [directory = std::move(launched_.directory)]() mutable -> asio::awaitable<void> {
      directory.reset();
      co_return;
    };
    co_await asio::co_spawn(removal_pool(), std::move(remove), asio::use_awaitable);
  }
  gone_ = true;
  closed_.cancel();
}

}  // namespace sandy::session
