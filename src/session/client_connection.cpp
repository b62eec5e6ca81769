#include "session/client_connection.h"

#include <unistd.h>

#include <chrono>

#include "host/named_policy.h"
#include "plan/dump.h"
#include "policy/json_writer.h"
#include "session/kept.h"
#include "session/usage.h"

namespace sandy::session {
namespace {

constexpr std::size_t kShownWords = 4'096;  // of a process, in a list
constexpr std::uint64_t kMaxIdle = 366ULL * 24 * 3600 * 1000;

// `signal` is also a request, for a process that nobody here is attached to.
bool is_follow_up(const wire::Frame& frame) {
  if (frame.header.contains("sandbox")) return false;
  const auto op = frame.op();
  return op == "data" || op == "eof" || op == "credit" || op == "cancel" || op == "signal" || op == "resize" || op == "drain";
}

}  // namespace

ClientConnection::ClientConnection(Server& server, UniqueFd socket)
    : server_(server), channel_(wire::Channel::make(server.io().get_executor(), std::move(socket), wire::kMaxRequestPayload)) {}

asio::awaitable<void> ClientConnection::run() {
  auto self = shared_from_this();
  while (true) {
    auto frame = co_await channel_->read();
    if (!frame) break;
    if (is_follow_up(*frame)) {
      if (active_ && active_->client_id == frame->id) {
        const auto sandbox = active_->sandbox;
        sandbox->follow(active_->agent_id, std::move(frame->header), std::move(frame->payload));
      } else if (attached_ && attached_->client_id == frame->id) {
        const auto process = attached_->process;
        process->follow(*this, std::move(frame->header), std::move(frame->payload));
      }
      continue;
    }
    if (questions_) {
      if (frame->op() != "answer" || frame->id != questions_->client_id) break;
      const auto sandbox = questions_->sandbox;
      const auto verdict = frame->word("verdict");
      co_await sandbox->answer(static_cast<std::uint32_t>(frame->number("question", 0)), verdict == "once" || verdict == "always", verdict == "always");
      continue;
    }
    if (frame->op() == "answer") continue;  // to a question of a sandbox that has just ended
    if (active_ || attached_) break;  // a second request at a time: the client has lost its place
    handling_ = true;
    co_await handle(std::move(*frame));
    handling_ = false;
    server_.note_use();
  }
  if (busy()) server_.note_use();
  if (questions_) questions_->sandbox->set_on_question(Sandbox::OnQuestion(), this);
  questions_.reset();
  if (active_) active_->sandbox->abandon(active_->agent_id);
  active_.reset();
  if (attached_) attached_->process->detach(*this);
  attached_.reset();
  channel_->close();
  server_.forget(self);
}

asio::awaitable<void> ClientConnection::handle(wire::Frame frame) {
  server_.quiet().note();
  server_.note_use();
  const std::string_view op = frame.op();
  if (op == "hello") {
    if (frame.number("version", 0) != wire::kProtocolVersion) {
      end_error(frame.id, "version", "this sandy speaks version " + std::to_string(wire::kProtocolVersion));
    } else {
      end_hello(frame.id);
    }
  } else if (op == "connect") {
    auto fds = channel_->take_fds();
    if (fds.size() != 1) {
      end_error(frame.id, "connect", "needs one descriptor");
    } else {
      server_.add_connection(std::move(fds.front()));
      end(frame.id, wire::Json::object());
    }
  } else if (op == "create") {
    if (frame.flag("keep", false)) {
      co_await create_kept(frame);
    } else {
      co_await create(frame);
    }
  } else if (op == "plan") {
    show_plan(frame);
  } else if (op == "policy") {
    read_named_policy(frame);
  } else if (op == "network") {
    co_await change_rules(frame);
  } else if (op == "limits") {
    co_await change_limits(frame);
  } else if (op == "stats") {
    tell_usage(frame);
  } else if (op == "questions") {
    co_await take_questions(frame);
  } else if (op == "describe") {
    describe(frame);
  } else if (op == "spawn") {
    spawn(std::move(frame));
  } else if (op == "attach") {
    attach(frame);
  } else if (op == "processes") {
    list_processes(frame);
  } else if (op == "signal" || op == "kill") {
    change_process(frame);
  } else if (op == "close") {
    co_await server_.close(std::string(frame.word("sandbox")), frame.flag("stop", false));
    end(frame.id, wire::Json::object());
  } else {
    forward(std::move(frame));
  }
}

asio::awaitable<void> ClientConnection::create(const wire::Frame& frame) {
  const auto cut = frame.cut();
  if (!cut || cut->args.empty() || cut->args.size() > 3) co_return end_error(frame.id, "policy", "create needs a policy, and may have its file, and an audit log");
  if (const auto ready = check_machine(); !ready) co_return end_error(frame.id, "start", ready.error().text());
  Sandbox::NetworkOptions network;
  if (cut->args.size() > 2) {
    auto audit = AuditLog::open(std::string(cut->args[2]));
    if (!audit) co_return end_error(frame.id, "policy", audit.error().text());
    network.audit = std::move(*audit);
  }
  std::vector<std::string> kept(cut->args.begin() + 1, cut->args.end());
  auto planned = plan_json(cut->args[0], kept);
  if (!planned) co_return end_error(frame.id, "policy", planned.error().text());
  // Somebody will take its questions.
  if (frame.flag("asks", false)) network.on_question = [](std::uint32_t, const std::string&) {};
  auto sandbox = co_await Sandbox::start(server_.io().get_executor(), std::move(*planned), std::nullopt, std::move(network));
  if (!sandbox) co_return end_error(frame.id, "start", sandbox.error().text());
  if (channel_->peer_closed()) {
    // Whoever asked is gone: nobody else knows of this sandbox.
    co_await (*sandbox)->close("the client went away while the sandbox started");
    co_return;
  }
  server_.add(*sandbox);
  end_created(frame.id, **sandbox);
}

asio::awaitable<void> ClientConnection::create_kept(const wire::Frame& frame) {
  const auto cut = frame.cut();
  const std::string name(frame.word("name")), resumed(frame.word("resume"));
  if (!server_.may_keep()) co_return end_error(frame.id, "kept", "this sandy is not for a kept sandbox, or has one, or makes one");
  const auto making = server_.making();
  if (!cut || cut->args.size() > 3 || (cut->args.empty() && resumed.empty())) co_return end_error(frame.id, "policy", "create needs a policy, and may have its file, and an audit log");
  if (const auto ready = check_machine(); !ready) co_return end_error(frame.id, "start", ready.error().text());
  if (const auto checked = name.empty() ? Result<void>() : check_kept_name(name); !checked) co_return end_error(frame.id, "kept", checked.error().text());
  const auto state = host::StateDirectory::open();
  if (!state) co_return end_error(frame.id, "start", state.error().text());
  // Until it is written down: of two of the same name, one is refused.
  const auto lock = state->lock_kept();
  if (!lock) co_return end_error(frame.id, "start", lock.error().text());
  sweep_kept(*state);
  KeptRecord record;
  if (!resumed.empty()) {
    auto found = find_kept(resumed);
    if (!found) co_return end_error(frame.id, "kept", found.error().text());
    if (found->running) co_return end_error(frame.id, "kept", Error{"sandbox " + resumed, "it runs already", "attach to it, or stop it first"}.text());
    record = std::move(found->record);
  }
  if (!name.empty() && name != record.name) {
    const auto all = kept_sandboxes();
    if (!all) co_return end_error(frame.id, "start", all.error().text());
    for (const auto& other : *all) {
      if (other.record.name != name) continue;
      co_return end_error(frame.id, "kept", Error{"name \"" + name + "\"", "sandbox " + other.record.id + " has it", "choose another one, or remove that one (sandy rm)"}.text());
    }
    record.name = name;
  }
  if (!cut->args.empty()) {
    record.policy = cut->args[0];
    record.files.assign(cut->args.begin() + 1, cut->args.end());
  }
  if (frame.header.contains("idle_ms")) record.idle_ms = frame.number("idle_ms", 0);
  Sandbox::NetworkOptions network;
  if (record.files.size() > 1 && !record.files[1].empty()) {
    auto audit = AuditLog::open(record.files[1]);
    if (!audit) co_return end_error(frame.id, "policy", audit.error().text());
    network.audit = std::move(*audit);
  }
  if (frame.flag("asks", false)) network.on_question = [](std::uint32_t, const std::string&) {};
  auto planned = plan_json(record.policy, record.files);
  if (!planned) co_return end_error(frame.id, "policy", planned.error().text());
  Sandbox::KeepOptions keep;
  keep.resumed = record.id;
  auto started = co_await Sandbox::start(server_.io().get_executor(), std::move(*planned), std::nullopt, std::move(network), std::move(keep));
  if (!started) co_return end_error(frame.id, "start", started.error().text());
  const auto sandbox = *started;
  const bool is_new = record.id.empty();
  record.id = sandbox->id();
  // With its defaults and paths in full: whoever goes on with it may be somewhere else.
  record.policy = policy::to_json(sandbox->policy());
  record.pid = ::getpid();
  if (is_new) record.created_ms = static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::system_clock::now().time_since_epoch()).count());
  auto socket = host::listen_kept(record.id, state->path());
  if (socket) record.socket = socket->path;
  const auto written = socket ? sandbox->set_record(to_text(record)) : std::unexpected(socket.error());
  if (!written || channel_->peer_closed()) {
    if (is_new) sandbox->discard();
    co_await sandbox->close("nobody knows of this sandbox");
    co_return end_error(frame.id, "start", written ? "the client went away while the sandbox started" : written.error().text());
  }
  server_.keep(sandbox, std::move(*socket), std::chrono::milliseconds(std::min<std::uint64_t>(record.idle_ms, kMaxIdle)));
  end_created(frame.id, *sandbox);
}

asio::awaitable<void> ClientConnection::take_questions(const wire::Frame& frame) {
  const auto sandbox = alive(frame);
  if (!sandbox) co_return;
  questions_.emplace();
  questions_->client_id = frame.id;
  questions_->sandbox = sandbox;
  sandbox->set_on_question([weak = weak_from_this()](std::uint32_t question, const std::string& target) {
    if (const auto self = weak.lock()) self->ask(question, target);
  }, this);
}

void ClientConnection::ask(std::uint32_t question, const std::string& target) {
  if (!questions_) return;
  if (question == Sandbox::kNoMoreQuestions) {
    end(questions_->client_id, wire::Json::object());
    questions_.reset();
    return;
  }
  if (target.empty()) return;  // expired: the client's answer comes too late, and changes nothing
  wire::Json event = wire::event(questions_->client_id, "question");
  event["question"] = question;
  event["target"] = target;
  channel_->post(event);
}

asio::awaitable<void> ClientConnection::change_rules(const wire::Frame& frame) {
  const auto cut = frame.cut();
  const auto list = frame.word("list");
  const auto sandbox = alive(frame);
  if (!sandbox) co_return;
  if (!cut || (list != "allow" && list != "deny")) co_return end_error(frame.id, "policy", "network needs a list and rules");
  std::vector<std::string> rules(cut->args.begin(), cut->args.end());
  const auto done = co_await sandbox->add_rules(std::string(list), std::move(rules));
  if (!done) co_return end_error(frame.id, "policy", done.error().text());
  end(frame.id, wire::Json::object());
}

asio::awaitable<void> ClientConnection::change_limits(const wire::Frame& frame) {
  const auto cut = frame.cut();
  const auto sandbox = alive(frame);
  if (!sandbox) co_return;
  if (!cut || cut->args.size() != 1) co_return end_error(frame.id, "policy", "limits needs a policy of nothing but limits");
  const auto limits = parse_running_limits(cut->args[0]);
  if (!limits) co_return end_error(frame.id, "policy", limits.error().text());
  const auto done = co_await sandbox->set_limits(*limits);
  if (!done) co_return end_error(frame.id, "policy", done.error().text());
  end(frame.id, wire::Json::object());
}

void ClientConnection::tell_usage(const wire::Frame& frame) {
  const auto sandbox = alive(frame);
  if (!sandbox) return;
  const auto usage = sandbox->usage();
  if (!usage) return end_error(frame.id, "no_cgroup", "this sandbox has no control group that counts: " + cgroups_here().why);
  end(frame.id, usage_json(*usage, sandbox->plan().cgroup->limits));
}

// The sandbox that a request names; without one that is alive, the request has ended.
std::shared_ptr<Sandbox> ClientConnection::alive(const wire::Frame& frame) {
  auto sandbox = server_.find(frame.word("sandbox"));
  if (sandbox && sandbox->alive()) return sandbox;
  end_error(frame.id, "no_sandbox", sandbox ? sandbox->end_reason() : "there is no such sandbox, or it was closed");
  return nullptr;
}

// As alive(), for the process that it names. What has ended can be read as long as the sandbox is known.
std::shared_ptr<Process> ClientConnection::process(const wire::Frame& frame) {
  const auto sandbox = server_.find(frame.word("sandbox"));
  if (!sandbox) return end_error(frame.id, "no_sandbox", "there is no such sandbox, or it was closed"), nullptr;
  auto found = server_.processes_of(*sandbox).find(frame.number("process", 0));
  if (!found) end_error(frame.id, "no_process", "there is no such process, or it ended too long ago");
  return found;
}

void ClientConnection::describe(const wire::Frame& frame) {
  if (const auto sandbox = alive(frame)) end_created(frame.id, *sandbox);
}

void ClientConnection::spawn(wire::Frame frame) {
  const auto sandbox = alive(frame);
  if (!sandbox) return;
  const auto cut = frame.cut();
  const auto count = frame.number("argc", 1);
  if (!cut || count == 0 || count > cut->args.size()) return end_error(frame.id, "invalid", "spawn needs args, as exec does");
  std::string words;
  for (std::size_t i = 0; i < count && words.size() < kShownWords; ++i) words.append(cut->args[i].substr(0, kShownWords - words.size())).push_back('\0');
  for (const char* key : {"sandbox", "keep"}) frame.header.erase(key);
  attached_ = AttachedProcess{frame.id, server_.processes_of(*sandbox).start(sandbox, std::move(frame.header), std::move(frame.payload), std::move(words))};
  attached_->process->attach(*this, {.offset = 0});
}

void ClientConnection::attach(const wire::Frame& frame) {
  const auto found = process(frame);
  if (!found) return;
  Process::Options options;
  if (frame.header.contains("offset")) options.offset = frame.number("offset", 0);
  options.follow = frame.flag("follow", true);
  options.hold = frame.flag("hold", true);
  attached_ = AttachedProcess{frame.id, found};
  found->attach(*this, options);
}

void ClientConnection::list_processes(const wire::Frame& frame) {
  const auto sandbox = alive(frame);
  if (!sandbox) return;
  for (const auto& process : server_.processes_of(*sandbox).all()) {
    wire::Json event = process->description();
    event["id"] = frame.id;
    event["ev"] = "data";
    channel_->post(event, process->words());
  }
  end(frame.id, wire::Json::object());
}

void ClientConnection::change_process(const wire::Frame& frame) {
  const auto found = process(frame);
  if (!found) return;
  if (frame.op() == "kill") {
    found->kill();
  } else {
    found->signal(static_cast<int>(frame.number("signal", 0)));
  }
  end(frame.id, wire::Json::object());
}

void ClientConnection::on_process_event(wire::Json header, std::string payload) {
  if (!attached_) return;
  header["id"] = attached_->client_id;
  if (header["ev"] == "end") {
    attached_.reset();
    server_.quiet().note();
    server_.note_use();
  }
  std::vector<std::pair<wire::Json, std::string>> frames;
  frames.emplace_back(std::move(header), std::move(payload));
  channel_->post_all(std::move(frames));
}

void ClientConnection::end_hello(std::uint32_t id) {
  end(id, {{"version", wire::kProtocolVersion}, {"program", std::string("sandy ") + SANDY_VERSION}});
}

void ClientConnection::end_created(std::uint32_t id, const Sandbox& sandbox) {
  std::string payload;
  wire::Json lengths = wire::Json::array();
  for (const std::string& text : {sandbox.plan().workspace, sandbox.plan().home}) {
    lengths.push_back(text.size());
    payload += text;
  }
  wire::Json fields{{"sandbox", sandbox.id()}, {"degraded", sandbox.plan().degraded}, {"args", std::move(lengths)}};
  for (const auto& [host_port, port] : sandbox.published()) fields["published"][std::to_string(port)] = host_port;
  end(id, std::move(fields), std::move(payload));
}

void ClientConnection::read_named_policy(const wire::Frame& frame) {
  const auto cut = frame.cut();
  if (!cut || cut->args.size() != 2) return end_error(frame.id, "policy", "policy needs a name, and the directory of the client");
  auto found = host::find_policy(std::string(cut->args[0]), std::string(cut->args[1]));
  if (!found) return end_error(frame.id, "policy", found.error().text());
  wire::Json lengths = wire::Json::array();
  lengths.push_back(found->path.size());
  end(frame.id, wire::Json{{"args", std::move(lengths)}}, found->path + found->text);
}

void ClientConnection::show_plan(const wire::Frame& frame) {
  const auto cut = frame.cut();
  if (!cut || cut->args.size() != 1) return end_error(frame.id, "policy", "plan needs a policy");
  const auto planned = plan_json(cut->args[0]);
  if (!planned) return end_error(frame.id, "policy", planned.error().text());
  end(frame.id, wire::Json::object(), plan::dump_json(planned->plan));
}

void ClientConnection::forward(wire::Frame frame) {
  const auto sandbox = server_.find(frame.word("sandbox"));
  if (!sandbox) return end_error(frame.id, "no_sandbox", "there is no such sandbox, or it was closed");
  if (!sandbox->alive()) return end_error(frame.id, "no_sandbox", sandbox->end_reason());
  frame.header.erase("sandbox");
  // The request is open before the agent hears of it, so that its answer finds it.
  active_ = Active{frame.id, 0, sandbox};
  active_->agent_id = sandbox->open(std::move(frame.header), std::move(frame.payload), shared_from_this());
}

void ClientConnection::on_event(wire::Frame event) {
  if (!active_) return;
  event.header["id"] = active_->client_id;
  if (event.ev() == "end") {
    active_.reset();
    server_.quiet().note();
    server_.note_use();
  }
  std::vector<std::pair<wire::Json, std::string>> frames;
  frames.emplace_back(std::move(event.header), std::move(event.payload));
  channel_->post_all(std::move(frames));
}

void ClientConnection::end(std::uint32_t id, wire::Json fields, std::string payload) {
  fields["id"] = id;
  fields["ev"] = "end";
  std::vector<std::pair<wire::Json, std::string>> frames;
  frames.emplace_back(std::move(fields), std::move(payload));
  channel_->post_all(std::move(frames));
}

void ClientConnection::end_error(std::uint32_t id, const char* error, const std::string& detail) {
  end(id, {{"error", error}, {"detail", detail}});
}

}  // namespace sandy::session
