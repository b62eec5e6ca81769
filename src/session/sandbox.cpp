#include "session/sandbox.h"

#include <signal.h>
#include <sys/random.h>
#include <sys/wait.h>

#include <array>
#include <cerrno>

#include "host/children.h"
#include "host/diagnose.h"
#include "host/unix_sockets.h"
#include "session/wire/configuration.h"

namespace sandy::session {
namespace {

using namespace std::chrono_literals;
using namespace asio::experimental::awaitable_operators;

constexpr auto kNoError = asio::as_tuple(asio::use_awaitable);
constexpr auto kExitLimit = 2s;    // from the agent's end to bubblewrap's
constexpr auto kOrphanPatience = 100ms;
constexpr std::size_t kMaxMessages = 8'192;

// Where directories are removed; started with the first one.
asio::thread_pool& removal_pool() {
  static asio::thread_pool pool(1);
  return pool;
}

std::string new_id() {
  std::array<unsigned char, 8> bytes;
  while (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {}
  static constexpr char kHex[] = "0123456789abcdef";
  std::string out;
  for (const unsigned char byte : bytes) {
    out += kHex[byte >> 4];
    out += kHex[byte & 15];
  }
  return out;
}

}  // namespace

Sandbox::Sandbox(asio::any_io_executor executor, PlannedSandbox planned)
    : executor_(executor),
      planned_(std::move(planned)),
      id_(new_id()),
      ended_(executor),
      closed_(executor, asio::steady_timer::time_point::max()),
      life_(executor) {}

asio::awaitable<Result<std::shared_ptr<Sandbox>>> Sandbox::start(asio::any_io_executor executor, PlannedSandbox planned, std::optional<Request> first,
                                                                 std::chrono::seconds limit) {
  std::shared_ptr<Sandbox> self(new Sandbox(executor, std::move(planned)));
  auto launched = host::launch(self->planned_.plan, self->id_, self->planned_.seccomp);
  if (!launched) co_return std::unexpected(launched.error());
  self->launched_ = std::move(*launched);
  self->ended_.assign(self->launched_.pidfd.release());
  self->channel_ = wire::Channel::make(executor, std::move(self->launched_.agent), wire::kMaxReplyPayload);
  self->post_configuration();
  if (first) self->add(std::move(first->header), std::move(first->payload), std::move(first->sink));
  if (auto answered = co_await self->handshake(limit); !answered) {
    self->channel_->close();
    co_await self->wait_for_exit(kExitLimit);
    const std::string messages = co_await self->read_messages();
    host::remove_placeholders(self->planned_.plan.hidden_sockets);
    co_return std::unexpected(host::explain_start_failure(self->planned_.plan, messages, answered.error()));
  }
  self->launched_.mark.remove();
  host::remove_placeholders(self->planned_.plan.hidden_sockets);
  self->alive_ = true;
  asio::co_spawn(executor, [self] { return self->read_events(); }, asio::detached);
  if (self->planned_.plan.wall_time_ms != 0) asio::co_spawn(executor, [self] { return self->limit_life(); }, asio::detached);
  co_return self;
}

void Sandbox::post_configuration() {
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
  auto frame = wire::encode_configuration(configuration);
  channel_->post(frame.header, frame.payload);
}

asio::awaitable<Result<void>> Sandbox::handshake(std::chrono::seconds start_limit) {
  asio::steady_timer limit(executor_, start_limit);
  // Bubblewrap's end too: where it is killed, a child of its may hold the agent's socket, and wait for ever.
  auto outcome = co_await (channel_->read() || limit.async_wait(kNoError) || ended_.async_wait(asio::posix::descriptor_base::wait_read, kNoError));
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
  open_[id] = {std::move(sink), {}};
  open_[id].gate.note_sent();
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
  } else if (op != header.end() && *op == "data") {
    it->second.gate.note_sent();
  }
  header["id"] = id;
  std::vector<std::pair<wire::Json, std::string>> frames;
  frames.emplace_back(std::move(header), std::move(payload));
  channel_->post_all(std::move(frames));
}

void Sandbox::abandon(std::uint32_t id) {
  if (open_.erase(id) > 0 && alive()) channel_->post({{"id", id}, {"op", "cancel"}});
}

asio::awaitable<void> Sandbox::read_events() {
  auto self = shared_from_this();
  while (alive_) {
    auto event = co_await channel_->read();
    if (!event) break;
    dispatch(std::move(*event));
  }
  alive_ = false;
  if (end_reason_.empty()) end_reason_ = "the sandbox ended: its agent is gone";
  fail_open(end_reason_);
  if (!closing_) co_await close(end_reason_);
}

void Sandbox::dispatch(wire::Frame event) {
  const auto it = open_.find(event.id);
  if (it == open_.end()) return;  // ended or abandoned
  const auto sink = it->second.sink;
  if (!it->second.gate.admit(event)) {
    end_reason_ = "the sandbox was ended: its agent sent what it may not";
    alive_ = false;
    channel_->close();
    return;
  }
  if (event.ev() == "end") open_.erase(it);
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

asio::awaitable<void> Sandbox::close(std::string reason) {
  auto self = shared_from_this();
  if (closing_) {
    // Somebody else closes it: wait for that.
    while (!gone_) co_await closed_.async_wait(kNoError);
    co_return;
  }
  closing_ = true;
  if (end_reason_.empty()) end_reason_ = std::move(reason);
  alive_ = false;
  life_.cancel();
  channel_->close();  // the agent ends, and it is pid 1
  fail_open(end_reason_);
  co_await wait_for_exit(kExitLimit);
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
