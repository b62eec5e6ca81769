// The network of one sandbox: the sockets that listen in its namespace, what they are asked for, and the rules.
#pragma once

#include <boost/asio.hpp>
#include <memory>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "proxy/allowlist.h"
#include "proxy/dialer.h"
#include "proxy/dns_responder.h"
#include "proxy/event.h"
#include "proxy/pinned_addresses.h"
#include "proxy/published_port.h"
#include "proxy/synthetic_addresses.h"

namespace sandy::proxy {

class Connection;

// What all sandboxes of a proxy share.
struct Shared {
  asio::any_io_executor executor;
  Dialer& dialer;
  std::size_t connections = 0;
  std::size_t max_connections = 0;  // of all, as descriptors are
};

class SandboxNetwork : public std::enable_shared_from_this<SandboxNetwork> {
 public:
  static constexpr std::size_t kMaxConnections = 2'048;     // of a sandbox, and no more than a half of all there can be
  static constexpr std::size_t kMaxLookups = 256;           // at a time, with real answers
  static constexpr std::size_t kMaxQuestions = 32;          // without an answer
  static constexpr std::size_t kQuestionsASecond = 10;      // more are refused at once
  static constexpr std::size_t kMaxRefusals = 1'024;        // that are remembered
  static constexpr std::chrono::seconds kAnswerLimit{120};
  static constexpr std::chrono::seconds kClosedLimit{5};    // one that has closed its side may still read an answer: a half-close looks the same

  // `listeners`: the sockets of sandy-launch --network, in its order: TCP and UDP of IPv4, then maybe of IPv6.
  SandboxNetwork(Shared& shared, Allowlist allowlist, std::unique_ptr<EventSink> events);
  // False: one of them can't be served, and none is.
  bool start(std::vector<UniqueFd> listeners);
  void close();

  void add_inward(InwardPair sockets) { inward_->push_back(std::move(sockets)); }
  void publish(UniqueFd listener, std::uint16_t port);

  // Connections that the new rules forbid are cut.
  void set_rules(Allowlist allowlist);

  const Allowlist& allowlist() const { return allowlist_; }
  SyntheticAddresses& addresses() { return addresses_; }
  const PinnedAddresses& pinned() const { return pinned_; }
  // The answer to a query that `reply` could not give yet, for a client of DNS; notes a refusal.
  asio::awaitable<std::vector<std::uint8_t>> find(dns::Reply::Wanted wanted);
  Shared& shared() { return shared_; }
  bool open() const { return open_; }
  bool idle() const { return connections_.empty(); }

  // Whether somebody allows it, now that no rule does. No answer within kAnswerLimit is a refusal, and a refusal is remembered until the rules change.
  // Where `client`, who waits for it, has closed its side for kClosedLimit, the question is taken back unless another one waits.
  enum class Answer { allowed, refused, client_gone };
  asio::awaitable<Answer> ask(std::string target, tcp::socket& client);
  void answer(std::uint32_t number, bool allowed);

  // Limits how many refusals a second are told: a sandbox that is refused all the time must not keep others busy. How many were left out is told
  // when the second is over.
  void note(Event event);

 private:
  struct Question {
    explicit Question(const asio::any_io_executor& executor) : answered(executor, asio::steady_timer::time_point::max()) {}
    asio::steady_timer answered;
    std::chrono::steady_clock::time_point expires;
    std::size_t waiting = 0;  // clients
    std::string target;
    std::optional<bool> allowed;
  };
  std::shared_ptr<Question> question_about(const std::string& target);
  void take_back(const std::shared_ptr<Question>& question);
  void remember_refusal(const std::string& target);
  void tell_left_out();
  asio::awaitable<void> accept(std::shared_ptr<tcp::acceptor> acceptor);
  asio::awaitable<void> answer(std::shared_ptr<asio::ip::udp::socket> socket);
  asio::awaitable<void> answer_later(std::shared_ptr<asio::ip::udp::socket> socket, asio::ip::udp::endpoint to, dns::Reply::Wanted wanted);

  Shared& shared_;
  Allowlist allowlist_;
  std::unique_ptr<EventSink> events_;
  SyntheticAddresses addresses_;
  PinnedAddresses pinned_;
  std::size_t lookups_ = 0;
  std::vector<std::shared_ptr<tcp::acceptor>> acceptors_;
  std::vector<std::shared_ptr<asio::ip::udp::socket>> resolvers_;
  std::vector<std::shared_ptr<PublishedPort>> published_;
  std::shared_ptr<InwardSockets> inward_ = std::make_shared<InwardSockets>();
  std::set<Connection*> connections_;
  std::map<std::uint32_t, std::shared_ptr<Question>> questions_;  // without an answer
  std::set<std::string, std::less<>> refused_;                     // when asked
  std::uint32_t next_question_ = 1;
  std::chrono::steady_clock::time_point questions_since_{};
  std::size_t recent_questions_ = 0;
  bool open_ = true;
  std::chrono::steady_clock::time_point events_since_{};
  std::size_t recent_events_ = 0;
  asio::steady_timer left_out_{shared_.executor};
};

}  // namespace sandy::proxy
