#include "proxy/connection.h"

#include <linux/netfilter_ipv4.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <cstring>
#include <iterator>
#include <new>

#include "base/error.h"
#include "base/gateway.h"
#include "policy/host_name.h"
#include "proxy/dns_responder.h"
#include "proxy/first_bytes.h"
#include "proxy/http_head.h"
#include "proxy/http_messages.h"
#include "proxy/socks5.h"

namespace sandy::proxy {
namespace {

using namespace std::chrono_literals;
using namespace asio::experimental::awaitable_operators;
using policy::IpAddress;

constexpr auto kNoError = asio::as_tuple(asio::use_awaitable);
constexpr auto kHandshakeLimit = 10s;  // of TLS' first message, SOCKS' requests, and between two queries of DNS
constexpr auto kLinePatience = 200ms;  // how long a line of text that has no end yet is held
constexpr std::chrono::seconds kIdleLimit = 2h;
constexpr std::size_t kReadBytes = 16'384;
constexpr int kIp6OriginalDst = 80;  // IP6T_SO_ORIGINAL_DST, linux/netfilter_ipv6/ip6_tables.h

struct Destination {
  IpAddress address;
  std::uint16_t port = 0;
};

std::optional<Destination> original_destination(int fd) {
  Destination out;
  sockaddr_storage own{};
  socklen_t size = sizeof own;
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&own), &size) != 0) return {};
  if (own.ss_family == AF_INET) {
    sockaddr_in in{};
    size = sizeof in;
    if (::getsockopt(fd, SOL_IP, SO_ORIGINAL_DST, &in, &size) != 0) return {};
    std::memcpy(out.address.bytes.data(), &in.sin_addr, 4);
    out.port = ntohs(in.sin_port);
  } else {
    sockaddr_in6 in{};
    size = sizeof in;
    if (::getsockopt(fd, SOL_IPV6, kIp6OriginalDst, &in, &size) != 0) return {};
    std::memcpy(out.address.bytes.data(), &in.sin6_addr, 16);
    out.address.v6 = true;
    out.port = ntohs(in.sin6_port);
  }
  return out;
}

bool is_gateway(const IpAddress& address) {
  static const auto four = *policy::parse_ip_address(kGatewayIpv4), six = *policy::parse_ip_address(kGatewayIpv6);
  return address == four || address == six;
}

std::span<const std::uint8_t> as_octets(std::string_view text) { return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()}; }

// At least one more byte behind those in `bytes`, within the time. False: none came. (Waiting for the socket, and not reading from it, is what the
// timer competes with: a read that loses the race at its end would lose its bytes.)
asio::awaitable<bool> read_more(tcp::socket& socket, std::string& bytes, std::chrono::milliseconds limit) {
  asio::steady_timer timer(socket.get_executor(), limit);
  while (true) {
    const auto waited = co_await (socket.async_wait(tcp::socket::wait_read, kNoError) || timer.async_wait(kNoError));
    if (waited.index() == 1 || std::get<0>(std::get<0>(waited)) || !socket.is_open()) co_return false;
    const std::size_t have = bytes.size();
    bytes.resize(have + kReadBytes);
    const ssize_t n = ::recv(socket.native_handle(), bytes.data() + have, kReadBytes, MSG_DONTWAIT);
    bytes.resize(have + (n > 0 ? static_cast<std::size_t>(n) : 0));
    if (n > 0) co_return true;
    if (n == 0 || (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)) co_return false;
  }
}

template <typename Bytes>
asio::awaitable<bool> write_all(tcp::socket& socket, const Bytes& bytes) {
  const auto [error, n] = co_await asio::async_write(socket, asio::buffer(bytes), kNoError);
  co_return !error;
}

// What the server says goes to the client while the client's first bytes are looked at: servers of some protocols speak first.
asio::awaitable<void> pass_meanwhile(tcp::socket& server, tcp::socket& client, Stream& down) {
  const bool passed = co_await pump(server, client, down);
  const auto state = co_await asio::this_coro::cancellation_state;
  if (state.cancelled() != asio::cancellation_type::none) co_return;
  if (!passed) {
    reset(server);
    reset(client);
    co_return;
  }
  asio::steady_timer never(server.get_executor(), asio::steady_timer::time_point::max());
  co_await never.async_wait(kNoError);
}

std::string with_length(const std::vector<std::uint8_t>& message) {
  std::string out{static_cast<char>(message.size() >> 8), static_cast<char>(message.size() & 0xFF)};
  out.append(reinterpret_cast<const char*>(message.data()), message.size());
  return out;
}

HttpRefusal refusal(unsigned status, std::string reason) { return {status, std::move(reason)}; }

// That names this target alone.
policy::NetworkRule rule_for(const Authority& target) {
  policy::NetworkRule out;
  out.port = target.port;
  if (const auto* address = std::get_if<IpAddress>(&target.host)) {
    out.kind = policy::NetworkRule::Kind::network;
    out.network.address = *address;
    out.network.prefix = address->bits();
  } else {
    out.name = std::get<std::string>(target.host);
  }
  return out;
}

Event make_event(Event::Verdict verdict, std::string target, std::string protocol, std::string reason) {
  Event out;
  out.verdict = verdict;
  out.target = shown(target);
  out.protocol = std::move(protocol);
  out.reason = shown(reason);
  return out;
}

}  // namespace

void Connection::deny(const std::string& target, const std::string& protocol, const std::string& reason) {
  network_->note(make_event(Event::Verdict::denied, target, protocol, reason));
}

asio::awaitable<void> Connection::run() {
  const auto destination = original_destination(client_.native_handle());
  if (destination) {
    if (is_gateway(destination->address)) {
      switch (destination->port) {
        case kDnsPort: co_await serve_dns(); break;
        case kHttpPort: co_await serve_http(client_, std::string(), std::nullopt, std::nullopt, *this); break;
        case kSocksPort: co_await serve_socks(); break;
        default: reset(client_);
      }
    } else if (const auto name = network_->addresses().name_of(destination->address)) {
      co_await serve_target(*name, destination->port);
    } else {
      // With real answers, the name is one of those that were told this address: which, the client will say, or it is the last.
      const auto told = network_->pinned().names_of(destination->address);
      std::ranges::copy_if(told, std::back_inserter(names_), [&](const std::string& one) { return network_->allowlist().decide(one, destination->port).allowed; });
      Host host = destination->address;
      if (!names_.empty()) {
        host = names_.front();
        pinned_ = destination->address;
      } else if (!told.empty() && !network_->allowlist().decide(destination->address, destination->port).allowed) {
        host = told.front();  // for the words of the refusal
      }
      co_await serve_target(std::move(host), destination->port);
    }
  }
  boost::system::error_code ignored;
  client_.close(ignored);
}

Decision Connection::judge(const Authority& target) const {
  const auto by = [&](const Allowlist& rules) { return std::visit([&](const auto& host) { return rules.decide(host, target.port.value_or(0)); }, target.host); };
  return once_ ? by(network_->allowlist().plus(*once_)) : by(network_->allowlist());
}

Decision Connection::judge_connected() const {
  const auto decision = judge(*current_);
  if (!decision.allowed || !address_) return decision;
  const Allowlist rules = once_ ? network_->allowlist().plus(*once_) : network_->allowlist();
  return network_->shared().dialer.decide(current_->host, *address_, current_->port.value_or(0), rules);
}

void Connection::recheck() {
  if (!current_) return;
  const auto decision = judge_connected();
  if (decision.allowed) return;
  deny(authority_text(*current_), "tcp", decision.reason);
  reset(client_);
}

asio::awaitable<Connection::Dialled> Connection::connect_as(Authority target, std::string protocol) {
  auto decision = judge(target);
  if (decision.askable) {
    const auto answer = co_await network_->ask(authority_text(target), client_);
    if (answer == SandboxNetwork::Answer::allowed) {
      once_ = rule_for(target);
      decision = judge(target);
      if (decision.allowed) decision.reason = "allowed when asked";
    } else if (answer == SandboxNetwork::Answer::client_gone) {
      decision.reason = "not in the allowlist, and closed before there was an answer";
    } else {
      decision.reason = "not in the allowlist, and not allowed when asked";
    }
  }
  if (!decision.allowed) {
    deny(authority_text(target), protocol, decision.reason);
    co_return std::unexpected(refusal(403, decision.reason));
  }
  const Allowlist rules = once_ ? network_->allowlist().plus(*once_) : network_->allowlist();
  auto dialled = co_await network_->shared().dialer.dial(target.host, target.port.value_or(0), pinned_, rules);
  if (!dialled) {
    const auto& failure = dialled.error();
    network_->note(make_event(failure.refused ? Event::Verdict::denied : Event::Verdict::failed, authority_text(target), protocol, failure.reason));
    co_return std::unexpected(refusal(failure.refused ? 403 : 502, failure.reason));
  }
  // The rules may have changed while it was dialled.
  current_ = target;
  address_ = dialled->address;
  const auto still = judge_connected();
  if (!still.allowed || !network_->open()) {
    current_.reset();
    const std::string reason = still.allowed ? "the sandbox has ended" : still.reason;
    deny(authority_text(target), protocol, reason);
    co_return std::unexpected(refusal(403, reason));
  }
  protocol_ = protocol;
  since_ = std::chrono::steady_clock::now();
  up_ = down_ = 0;
  auto event = make_event(Event::Verdict::allowed, authority_text(target), protocol, decision.reason);
  event.address = dialled->address.text();
  network_->note(std::move(event));
  co_return std::move(dialled->socket);
}

asio::awaitable<Connection::Dialled> Connection::connect(Authority target, bool tunnel) { return connect_as(std::move(target), tunnel ? "connect" : "http"); }

void Connection::count(std::uint64_t up, std::uint64_t down) {
  up_ += up;
  down_ += down;
}

void Connection::closed() {
  if (!current_) return;
  auto event = make_event(Event::Verdict::closed, authority_text(*current_), protocol_, {});
  event.bytes_up = up_;
  event.bytes_down = down_;
  event.duration_ms = static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - since_).count());
  current_.reset();
  address_.reset();
  network_->note(std::move(event));
}

void Connection::note_refusal(const std::string& target, const std::string& reason) { deny(target, "http", reason); }

asio::awaitable<void> Connection::serve_target(Host host, std::uint16_t port) {
  Authority target;
  target.host = std::move(host);
  target.port = port;
  auto server = co_await connect_as(target, "tcp");
  if (!server) {
    reset(client_);
    co_return;
  }
  co_await tunnel(client_, std::string(), *server, std::string(), std::move(target), false);
}

Decision Connection::judge_server_name(const std::optional<std::string>& name, const Authority& target) {
  Decision out{true, {}};
  const auto* const expected = std::get_if<std::string>(&target.host);
  // An address was allowed by itself, whatever is served there; and no name at all is for the one that the address stands for.
  if (expected == nullptr || !name) return out;
  const auto asked = policy::canonical_host_name(*name);
  if (asked && *asked == *expected) return out;
  if (asked && std::ranges::find(names_, *asked) != names_.end()) {
    // Another one of those that have the address: it is what this connection is for from now on.
    current_->host = *asked;
    return judge_connected();
  }
  out.allowed = false;
  out.reason = "TLS asks for the server name " + printable(*name) + ", not " + *expected;
  return out;
}

asio::awaitable<bool> Connection::classify_or_end(Stream& up, tcp::socket& server, const Authority& target, std::string& http) {
  bool goes_on = false;
  // An exception (out of memory) would leave the other direction waiting.
  try {
    goes_on = co_await classify(up, server, target, http);
  } catch (const std::bad_alloc&) {
    up.pending = {};
  }
  co_return goes_on;
}

asio::awaitable<bool> Connection::classify(Stream& up, tcp::socket& server, const Authority& target, std::string& http) {
  FirstBytes first;
  bool passed = false;  // of an unfinished line of text
  first.feed(as_octets(up.pending));
  while (first.kind() == FirstBytes::Kind::unknown) {
    const bool started = !up.pending.empty() || passed, may_pass = first.may_pass() && !passed;
    const auto limit = !started ? std::chrono::milliseconds(kIdleLimit) : may_pass ? kLinePatience : passed ? std::chrono::milliseconds(kIdleLimit) : kHandshakeLimit;
    const std::size_t before = up.pending.size();
    const bool more = co_await read_more(client_, up.pending, limit);
    if (!more) {
      if (!client_.is_open()) co_return false;
      char byte = 0;
      const bool ended = ::recv(client_.native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
      if (ended) co_return !started || first.may_pass();
      if (!may_pass) {
        if (started && !passed) deny(authority_text(target), "tls", "TLS that was begun and not gone on with");
        co_return false;
      }
      passed = true;
    } else {
      first.feed(as_octets(std::string_view(up.pending).substr(before)));
    }
    if (passed && first.kind() != FirstBytes::Kind::http) {
      const bool written = co_await write_all(server, up.pending);
      if (!written) co_return false;
      up.bytes += up.pending.size();
      up.pending.clear();
    }
  }
  switch (first.kind()) {
    case FirstBytes::Kind::tls: {
      const auto decision = judge_server_name(first.server_name(), target);
      if (!decision.allowed) deny(authority_text(target), "tls", decision.reason);
      co_return decision.allowed;
    }
    case FirstBytes::Kind::malformed_tls: deny(authority_text(target), "tls", "a malformed beginning of TLS"); co_return false;
    case FirstBytes::Kind::http:
      if (passed) {
        deny(authority_text(target), "http", "a request line in pieces");
        co_return false;
      }
      http = std::move(up.pending);
      up.pending = {};
      co_return true;
    default: co_return true;
  }
}

asio::awaitable<Authority> Connection::named_by_host(std::string& http, Authority target) {
  if (names_.size() < 2) co_return target;
  auto size = find_http_head(http);
  while (size && *size == 0) {
    const bool more = co_await read_more(client_, http, kHandshakeLimit);
    if (!more) co_return target;
    size = find_http_head(http);
  }
  if (!size) co_return target;  // it is refused for that
  const auto head = parse_http_head(std::string_view(http).substr(0, *size));
  const auto* const name = head ? std::get_if<std::string>(&head->target.host) : nullptr;
  if (name != nullptr && std::ranges::find(names_, *name) != names_.end()) {
    target.host = *name;
    current_ = target;
    recheck();
  }
  co_return target;
}

asio::awaitable<void> Connection::tunnel(tcp::socket& client, std::string from_client, tcp::socket& server, std::string from_server, Authority target,
                                         bool upgraded) {
  Stream up, down;
  up.pending = std::move(from_client);
  down.pending = std::move(from_server);
  std::string http;
  bool goes_on = true;
  if (!upgraded) {
    auto outcome = co_await (classify_or_end(up, server, target, http) || pass_meanwhile(server, client, down));
    goes_on = outcome.index() == 0 && std::get<0>(outcome);
  }
  // A server that has said as much as needs a pipe, before the first word of a client that speaks HTTP, is none of HTTP.
  if (!goes_on || (!http.empty() && down.in_pipe > 0)) {
    reset(client);
    reset(server);
  } else if (!http.empty()) {
    protocol_ = "http";
    if (!down.pending.empty()) co_await write_all(client, down.pending);
    count(up.bytes, down.bytes + down.pending.size());
    target = co_await named_by_host(http, std::move(target));
    co_await serve_http(client, std::move(http), target, std::move(server), *this);
    co_return;
  } else {
    const bool whole = co_await relay(client, server, up, down, kIdleLimit);
    if (!whole) {
      reset(client);
      reset(server);
    }
  }
  count(up.bytes, down.bytes);
  closed();
}

asio::awaitable<void> Connection::serve_dns() {
  std::string bytes;
  while (true) {
    // RFC 1035, section 4.2.2: each message has its length before it.
    while (bytes.size() < 2 || bytes.size() < 2U + (static_cast<unsigned char>(bytes[0]) << 8 | static_cast<unsigned char>(bytes[1]))) {
      const bool more = co_await read_more(client_, bytes, kHandshakeLimit);
      if (!more) co_return;
    }
    const std::size_t size = static_cast<std::size_t>(static_cast<unsigned char>(bytes[0]) << 8 | static_cast<unsigned char>(bytes[1]));
    const auto reply = dns::respond(as_octets(std::string_view(bytes).substr(2, size)), network_->allowlist(), network_->addresses(), false);
    bytes.erase(0, 2 + size);
    if (!reply.decision.allowed && !reply.name.empty()) deny(reply.name, "dns", reply.decision.reason);
    std::vector<std::uint8_t> message = reply.message;
    if (reply.wanted) message = co_await network_->find(*reply.wanted);
    if (message.empty()) co_return;
    const std::string out = with_length(message);
    const bool written = co_await write_all(client_, out);
    if (!written) co_return;
  }
}

asio::awaitable<void> Connection::serve_socks() {
  std::string bytes;
  const auto end = std::chrono::steady_clock::now() + kHandshakeLimit;  // for all of it: a client that sends a byte at a time has no more
  const auto left = [&] { return std::max(1ms, std::chrono::duration_cast<std::chrono::milliseconds>(end - std::chrono::steady_clock::now())); };
  while (true) {
    const auto parsed = socks5::parse_greeting(as_octets(bytes));
    if (std::holds_alternative<socks5::Malformed>(parsed)) co_return;
    if (const auto* greeting = std::get_if<socks5::Greeting>(&parsed)) {
      const auto method = greeting->offers_none ? socks5::Method::none : socks5::Method::unacceptable;
      const bool written = co_await write_all(client_, socks5::method_message(method));
      if (!written || !greeting->offers_none) co_return;
      bytes.erase(0, greeting->size);
      break;
    }
    const bool more = co_await read_more(client_, bytes, left());
    if (!more) co_return;
  }
  std::optional<socks5::Request> request;
  while (!request) {
    const auto parsed = socks5::parse_request(as_octets(bytes));
    if (const auto* malformed = std::get_if<socks5::Malformed>(&parsed)) {
      co_await write_all(client_, socks5::reply_message(malformed->reply));
      co_return;
    }
    if (const auto* whole = std::get_if<socks5::Request>(&parsed)) {
      request = *whole;
    } else {
      const bool more = co_await read_more(client_, bytes, left());
      if (!more) co_return;
    }
  }
  bytes.erase(0, request->size);
  const auto* const name = std::get_if<std::string>(&request->host);
  std::optional<Host> host;
  if (name == nullptr) {
    host = std::get<IpAddress>(request->host);
    // A client that resolved the name itself, with our answer.
    if (const auto known = network_->addresses().name_of(std::get<IpAddress>(request->host))) host = *known;
  } else {
    host = parse_host(*name, false);
  }
  const std::string shown = (name != nullptr ? *name : std::get<IpAddress>(request->host).text()) + ":" + std::to_string(request->port);
  socks5::Reply reply = socks5::Reply::succeeded;
  if (request->command != socks5::Command::connect) {
    reply = socks5::Reply::command_not_supported;
    deny(shown, "socks5", "SOCKS commands other than CONNECT are not served");
  } else if (!host || request->port == 0) {
    reply = socks5::Reply::not_allowed;
    deny(shown, "socks5", "no name and no address");
  }
  if (reply != socks5::Reply::succeeded) {
    co_await write_all(client_, socks5::reply_message(reply));
    co_return;
  }
  Authority target;
  target.host = std::move(*host);
  target.port = request->port;
  auto server = co_await connect_as(target, "socks5");
  if (!server) {
    co_await write_all(client_, socks5::reply_message(server.error().status == 403 ? socks5::Reply::not_allowed : socks5::Reply::host_unreachable));
    co_return;
  }
  const bool written = co_await write_all(client_, socks5::reply_message(socks5::Reply::succeeded));
  if (!written) {
    closed();
    co_return;
  }
  co_await tunnel(client_, std::move(bytes), *server, std::string(), std::move(target), false);
}

}  // namespace sandy::proxy
