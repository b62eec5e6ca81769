#include "proxy/sandbox_network.h"

#include <poll.h>

#include <algorithm>
#include <array>
#include <boost/asio/experimental/awaitable_operators.hpp>

#include "base/error.h"
#include "proxy/connection.h"
#include "proxy/dns_responder.h"

namespace sandy::proxy {
namespace {

using namespace asio::experimental::awaitable_operators;

constexpr auto kNoError = asio::as_tuple(asio::use_awaitable);
constexpr auto kClientLooks = std::chrono::milliseconds(250);
constexpr std::size_t kEventsASecond = 200;
constexpr std::size_t kMaxDatagram = 4'096;

// Whether it will send nothing more. What it has sent before may still wait to be read, so that a read would not say so.
bool has_closed(tcp::socket& client) {
  pollfd state{client.native_handle(), POLLRDHUP, 0};
  return state.fd < 0 || (::poll(&state, 1, 0) == 1 && state.revents != 0);
}

// In all of the connection's life it counts, and the network knows of it.
class Registered {
 public:
  Registered(std::set<Connection*>& all, std::size_t& count, Connection& connection) : all_(all), count_(count), connection_(connection) {
    all_.insert(&connection_);
    ++count_;
  }
  ~Registered() {
    all_.erase(&connection_);
    --count_;
  }
  Registered(const Registered&) = delete;
  Registered& operator=(const Registered&) = delete;

 private:
  std::set<Connection*>& all_;
  std::size_t& count_;
  Connection& connection_;
};

asio::awaitable<void> serve(std::shared_ptr<SandboxNetwork> network, std::set<Connection*>& all, tcp::socket client) {
  Connection connection(network, client);
  const Registered registered(all, network->shared().connections, connection);
  co_await connection.run();
}

Event refused(std::string target, const char* protocol, std::string reason) {
  Event event;
  event.target = shown(target);
  event.protocol = protocol;
  event.reason = shown(reason);
  return event;
}

}  // namespace

SandboxNetwork::SandboxNetwork(Shared& shared, Allowlist allowlist, std::unique_ptr<EventSink> events)
    : shared_(shared), allowlist_(std::move(allowlist)), events_(std::move(events)) {}

bool SandboxNetwork::start(std::vector<UniqueFd> listeners) {
  for (std::size_t i = 0; i + 1 < listeners.size(); i += 2) {
    boost::system::error_code error;
    auto acceptor = std::make_shared<tcp::acceptor>(shared_.executor);
    acceptor->assign(i == 0 ? tcp::v4() : tcp::v6(), listeners[i].release(), error);
    if (error) return false;
    auto resolver = std::make_shared<asio::ip::udp::socket>(shared_.executor);
    resolver->assign(i == 0 ? asio::ip::udp::v4() : asio::ip::udp::v6(), listeners[i + 1].release(), error);
    if (error) return false;
    acceptors_.push_back(acceptor);
    resolvers_.push_back(resolver);
  }
  for (const auto& acceptor : acceptors_) asio::co_spawn(shared_.executor, accept(acceptor), asio::detached);
  for (const auto& resolver : resolvers_) asio::co_spawn(shared_.executor, answer(resolver), asio::detached);
  return true;
}

void SandboxNetwork::publish(UniqueFd listener, std::uint16_t port) {
  published_.push_back(std::make_shared<PublishedPort>(shared_.executor, std::move(listener), port, inward_));
  published_.back()->start();
}

void SandboxNetwork::close() {
  open_ = false;
  boost::system::error_code ignored;
  for (const auto& port : published_) port->close();
  for (const auto& [number, question] : questions_) question->answered.cancel();
  for (const auto& acceptor : acceptors_) acceptor->close(ignored);
  for (const auto& resolver : resolvers_) resolver->close(ignored);
  for (Connection* connection : connections_) connection->cut();
  left_out_.cancel();
  tell_left_out();
}

// The open one, or a new one. Nothing: there are too many.
std::shared_ptr<SandboxNetwork::Question> SandboxNetwork::question_about(const std::string& target) {
  for (const auto& [number, open] : questions_) {
    if (open->target == target) return open;
  }
  const auto now = std::chrono::steady_clock::now();
  if (now - questions_since_ > std::chrono::seconds(1)) {
    questions_since_ = now;
    recent_questions_ = 0;
  }
  if (questions_.size() >= kMaxQuestions || ++recent_questions_ > kQuestionsASecond) return nullptr;
  auto question = std::make_shared<Question>(shared_.executor);
  question->target = target;
  question->expires = now + kAnswerLimit;
  const std::uint32_t number = next_question_++;
  questions_[number] = question;
  events_->on_question(number, target);
  return question;
}

void SandboxNetwork::take_back(const std::shared_ptr<Question>& question) {
  for (const auto& [number, open] : questions_) {
    if (open == question) events_->on_expired(number);
  }
  std::erase_if(questions_, [&](const auto& entry) { return entry.second == question; });
  question->answered.cancel();
}

asio::awaitable<SandboxNetwork::Answer> SandboxNetwork::ask(std::string target, tcp::socket& client) {
  auto self = shared_from_this();
  if (refused_.contains(target)) co_return Answer::refused;
  const auto question = question_about(target);
  if (!question) co_return Answer::refused;
  ++question->waiting;
  std::optional<std::chrono::steady_clock::time_point> closed;
  while (open_ && !question->allowed) {
    asio::steady_timer look(shared_.executor, kClientLooks);
    const auto answered = co_await (question->answered.async_wait(kNoError) || look.async_wait(kNoError));
    if (answered.index() == 0) continue;
    const auto now = std::chrono::steady_clock::now();
    if (now >= question->expires) {
      question->allowed = false;
      take_back(question);
      remember_refusal(target);
    } else if (!has_closed(client)) {
      closed.reset();
    } else if (!closed) {
      closed = now;
    } else if (now - *closed >= kClosedLimit) {
      if (--question->waiting == 0) take_back(question);
      co_return Answer::client_gone;
    }
  }
  --question->waiting;
  co_return question->allowed.value_or(false) ? Answer::allowed : Answer::refused;
}

void SandboxNetwork::remember_refusal(const std::string& target) {
  if (refused_.size() >= kMaxRefusals) refused_.clear();
  refused_.insert(target);
}

void SandboxNetwork::answer(std::uint32_t number, bool allowed) {
  const auto found = questions_.find(number);
  if (found == questions_.end()) return;
  const auto question = found->second;
  questions_.erase(found);
  question->allowed = allowed;
  if (!allowed) remember_refusal(question->target);
  question->answered.cancel();
}

void SandboxNetwork::set_rules(Allowlist allowlist) {
  allowlist_ = std::move(allowlist);
  refused_.clear();
  for (Connection* connection : connections_) connection->recheck();
}

void SandboxNetwork::tell_left_out() {
  const std::size_t left_out = recent_events_ > kEventsASecond ? recent_events_ - kEventsASecond : 0;
  recent_events_ = 0;
  if (left_out > 0) events_->on_event(refused(std::to_string(left_out) + " more", "any", "too many a second to be told one by one"));
}

void SandboxNetwork::note(Event event) {
  const auto now = std::chrono::steady_clock::now();
  if (now - events_since_ > std::chrono::seconds(1)) {
    tell_left_out();
    events_since_ = now;
  }
  // What was allowed is always told.
  const bool refusal = event.verdict == Event::Verdict::denied || event.verdict == Event::Verdict::failed;
  if (!refusal || ++recent_events_ <= kEventsASecond) {
    events_->on_event(std::move(event));
    return;
  }
  if (recent_events_ != kEventsASecond + 1) return;
  left_out_.expires_at(events_since_ + std::chrono::seconds(1));
  left_out_.async_wait([weak = weak_from_this()](const boost::system::error_code& error) {
    if (const auto self = weak.lock(); self && !error) self->tell_left_out();
  });
}

asio::awaitable<void> SandboxNetwork::accept(std::shared_ptr<tcp::acceptor> acceptor) {
  auto self = shared_from_this();
  asio::steady_timer pause(shared_.executor);
  while (open_) {
    auto [error, client] = co_await acceptor->async_accept(kNoError);
    if (!open_) break;
    if (error) {
      // Out of descriptors, or the client is gone already.
      pause.expires_after(std::chrono::milliseconds(20));
      co_await pause.async_wait(kNoError);
      continue;
    }
    if (connections_.size() >= std::min(kMaxConnections, shared_.max_connections / 2) || shared_.connections >= shared_.max_connections) {
      note(refused("a connection", "tcp", "too many are open"));
      reset(client);
      continue;
    }
    client.set_option(tcp::no_delay(true), error);
    asio::co_spawn(shared_.executor, serve(self, connections_, std::move(client)), asio::detached);
  }
}

asio::awaitable<std::vector<std::uint8_t>> SandboxNetwork::find(dns::Reply::Wanted wanted) {
  auto self = shared_from_this();
  ++lookups_;
  auto found = co_await shared_.dialer.addresses_of(wanted.name, allowlist_);
  --lookups_;
  std::vector<policy::IpAddress> told;
  if (found) {
    for (const auto& address : *found) {
      if (pinned_.pin(address, wanted.name)) told.push_back(address);
    }
  } else {
    auto event = refused(wanted.name, "dns", found.error().reason);
    if (!found.error().refused) event.verdict = Event::Verdict::failed;
    note(std::move(event));
  }
  co_return dns::answer(wanted, told, found.has_value());
}

asio::awaitable<void> SandboxNetwork::answer_later(std::shared_ptr<asio::ip::udp::socket> socket, asio::ip::udp::endpoint to, dns::Reply::Wanted wanted) {
  auto self = shared_from_this();
  const auto message = co_await find(std::move(wanted));
  boost::system::error_code ignored;
  if (socket->is_open()) socket->send_to(asio::buffer(message), to, 0, ignored);
}

asio::awaitable<void> SandboxNetwork::answer(std::shared_ptr<asio::ip::udp::socket> socket) {
  auto self = shared_from_this();
  std::array<std::uint8_t, kMaxDatagram> query;
  asio::ip::udp::endpoint from;
  while (open_) {
    const auto [error, size] = co_await socket->async_receive_from(asio::buffer(query), from, kNoError);
    if (!open_) break;
    if (error) continue;
    const auto reply = dns::respond(std::span(query).first(size), allowlist_, addresses_, true);
    // Before the answer: who gets it may end at once, and the refusal belongs to it.
    if (!reply.decision.allowed && !reply.name.empty()) note(refused(reply.name, "dns", reply.decision.reason));
    if (reply.wanted) {
      if (lookups_ < kMaxLookups) asio::co_spawn(shared_.executor, answer_later(socket, from, *reply.wanted), asio::detached);
      continue;
    }
    // An asker that doesn't take its answer has lost it.
    boost::system::error_code ignored;
    if (!reply.message.empty()) socket->send_to(asio::buffer(reply.message), from, 0, ignored);
  }
}

}  // namespace sandy::proxy
