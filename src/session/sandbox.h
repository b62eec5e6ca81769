// A sandbox that is alive: its processes, its agent, and the requests that are open there.
#pragma once

#include <boost/asio.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "host/launch.h"
#include "host/loopback_listener.h"
#include "session/audit_log.h"
#include "session/early_start.h"
#include "session/event_gate.h"
#include "session/limits.h"
#include "session/network.h"
#include "session/planning.h"
#include "session/wire/channel.h"

namespace sandy::session {

namespace asio = boost::asio;

// Who asked for something: gets the request's events in their order, the last being its `end`.
class EventSink {
 public:
  virtual ~EventSink() = default;
  // `event` is hostile: anything in the sandbox may have made it. Header keys and payload are as they came.
  virtual void on_event(wire::Frame event) = 0;
};

class Sandbox : public std::enable_shared_from_this<Sandbox> {
 public:
  // What is to be opened at the agent as soon as it is there.
  // `only`: no other command comes.
  struct Request {
    wire::Json header;
    std::string payload;
    std::shared_ptr<EventSink> sink;
    bool only = false;
  };
  static constexpr std::uint32_t kFirstId = 1;
  static constexpr std::chrono::seconds kStartLimit{20};

  // Who is asked whether what no rule names may be connected to. Called with a number for answer(), and the target ("NAME:PORT", "ADDRESS:PORT"); with
  // no target when the question is no more, and with kNoMoreQuestions when the sandbox ends.
  static constexpr std::uint32_t kNoMoreQuestions = 0;
  using OnQuestion = std::function<void(std::uint32_t, const std::string&)>;
  struct NetworkOptions {
    OnQuestion on_question;  // where there is one, what the rules don't name is asked for
    AuditLog audit;          // where every decision is written down
  };

  // Of one that outlives whoever made it.
  struct KeepOptions {
    std::string resumed;  // the id of the one that it goes on with; "": it is a new one
  };

  // Starts it and waits until its agent answers. The error says what could not be had, why, and how to get it; nothing is left then.
  // `limit`: how long the agent may take; a loaded machine is slow, and a hung start is not waited for.
  // `first`: a request that needs no round trip of its own; it is open under kFirstId when this returns a sandbox.
  // `network`: of a sandbox that has one. `keep`: what it leaves is there until somebody removes it, once it has a record (set_record).
  // `early`: of a start that has begun before the plan was made.
  static asio::awaitable<Result<std::shared_ptr<Sandbox>>> start(asio::any_io_executor executor, PlannedSandbox planned,
                                                                 std::optional<Request> first = {}, NetworkOptions network = {},
                                                                 std::optional<KeepOptions> keep = {}, std::chrono::seconds limit = kStartLimit,
                                                                 std::optional<EarlyStart> early = {});

  const std::string& id() const { return id_; }
  const plan::SandboxPlan& plan() const { return planned_.plan; }
  bool alive() const { return channel_ != nullptr && alive_; }
  // Ports of this machine's loopback, each with the sandbox's port that it leads to.
  const std::map<std::uint16_t, std::uint16_t>& published() const { return published_; }
  const std::string& end_reason() const { return end_reason_; }  // when not alive

  // Opens a request at the agent. `header` has `op` and fields; its id is set here, and returned.
  std::uint32_t open(wire::Json header, std::string payload, std::shared_ptr<EventSink> sink);
  // A further frame (`data`, `credit`, `cancel`, …) of an open request.
  void follow(std::uint32_t id, wire::Json header, std::string payload);
  // Events of this request are dropped from now on; the agent is told to cancel it.
  void abandon(std::uint32_t id);

  // Adds rules, as a policy has them, to a list of the network's ("allow" or "deny"), and takes the same ones out of the other. What
  // is connected and not allowed any more is cut. Returns when that is done; later policies know nothing of it.
  asio::awaitable<Result<void>> add_rules(std::string list, std::vector<std::string> rules);

  // Other limits of those that the kernel enforces; what `limits` doesn't set stays.
  asio::awaitable<Result<void>> set_limits(policy::Limits limits);
  // What it uses; `plan().cgroup` has the limits. None: it has no control group to ask.
  std::optional<cgroup::Usage> usage() const;

  // From now on; with nobody to be asked, the answer is no.
  // `owner` says whose it is: taking it back (nothing as `on_question`) is for that one alone.
  void set_on_question(OnQuestion on_question, const void* owner);
  // `always`: also from now on.
  asio::awaitable<void> answer(std::uint32_t question, bool allow, bool always);

  // Ends everything in it, and returns when its processes are gone and its directory is removed, or left where it is to be kept.
  asio::awaitable<void> close(std::string reason);
  // Returns when somebody has closed it.
  asio::awaitable<void> wait_closed();

  const policy::SandboxPolicy& policy() const { return planned_.policy; }
  // Of a kept one: what another one needs to go on with it.
  Result<void> set_record(const std::string& record) { return launched_.directory->keep(record); }
  // It is not to be kept any more.
  void discard() {
    if (launched_.directory) launched_.directory->discard();
  }

 private:
  struct Denial {
    std::string target, reason;
    bool failed = false;  // allowed, but it could not be reached
    bool operator==(const Denial&) const = default;
  };
  struct Open {
    std::shared_ptr<EventSink> sink;
    EventGate gate;
    bool is_command = false;
    std::string words;  // of a command, for the audit log: their beginning
    // What the network refused while it ran, whichever command of the sandbox it was, in the order of events.
    std::vector<Denial> denials;
    std::size_t denial_bytes = 0;
    std::uint64_t more_denials = 0;
  };

  Sandbox(asio::any_io_executor executor, PlannedSandbox planned, std::string id);
  asio::awaitable<Result<void>> enter_cgroup(std::unique_ptr<cgroup::SandboxCgroup> group);
  void post_configuration(bool one_command);
  asio::awaitable<Result<void>> handshake(std::chrono::seconds limit);
  asio::awaitable<void> read_events();
  asio::awaitable<std::string> read_messages();
  asio::awaitable<bool> wait_for_exit(std::chrono::milliseconds limit);
  asio::awaitable<void> limit_life();
  bool bubblewrap_runs();
  std::uint32_t add(wire::Json header, std::string payload, std::shared_ptr<EventSink> sink);
  void dispatch(wire::Frame event);
  static void tell_denials(const Open& command, wire::Json& end);
  bool answers_unread(const wire::Frame& event, const EventGate& gate);
  Result<void> listen_for_published();
  Result<void> join_network();
  void on_network(const wire::Frame* event);
  void write_down(const wire::Frame& event);
  bool wants_denials(const wire::Frame& event) const;
  void fail_open(const std::string& reason);

  asio::any_io_executor executor_;
  PlannedSandbox planned_;
  std::string id_;
  host::LaunchedSandbox launched_;
  std::shared_ptr<wire::Channel> channel_;
  std::map<std::uint32_t, Open> open_;
  std::shared_ptr<Limits> limits_;    // where the plan has control groups
  std::shared_ptr<Network> network_;  // where the plan has one
  std::uint32_t network_id_ = 0;
  OnQuestion on_question_;
  const void* asked_ = nullptr;
  AuditLog audit_;
  std::map<std::uint32_t, std::string> questions_;  // without an answer: the targets
  std::map<std::uint16_t, std::uint16_t> published_;
  std::vector<host::LoopbackListener> published_listeners_;  // until the proxy has them
  std::uint32_t next_id_ = kFirstId;
  std::size_t ended_input_ = 0;  // bytes of requests that have ended, which may still wait for the agent
  asio::posix::stream_descriptor ended_;  // bubblewrap's pidfd
  bool alive_ = false, closing_ = false, gone_ = false, timed_out_ = false;
  asio::steady_timer closed_, life_;
  std::string end_reason_;
};

}  // namespace sandy::session
