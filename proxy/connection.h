// One TCP connection that a process of a sandbox has made.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "proxy/authority.h"
#include "proxy/http_session.h"
#include "proxy/relay.h"
#include "proxy/sandbox_network.h"

namespace sandy::proxy {

// Where it was going (SO_ORIGINAL_DST) decides: to a synthetic address, for the name that has it; to the gateway's ports 53 (DNS), 3128 (HTTP proxy) and
// 1080 (SOCKS), for what is asked there; to any other address, for that.
class Connection : public HttpOwner {
 public:
  static constexpr std::uint16_t kDnsPort = 53, kHttpPort = 3'128, kSocksPort = 1'080;

  Connection(std::shared_ptr<SandboxNetwork> network, tcp::socket& client) : network_(std::move(network)), client_(client) {}

  asio::awaitable<void> run();
  // After a change of the rules.
  void recheck();
  void cut() { reset(client_); }

  asio::awaitable<std::expected<tcp::socket, HttpRefusal>> connect(Authority target, bool tunnel) override;
  asio::awaitable<void> tunnel(tcp::socket& client, std::string from_client, tcp::socket& server, std::string from_server, Authority target,
                               bool upgraded) override;
  void count(std::uint64_t up, std::uint64_t down) override;
  void closed() override;
  void note_refusal(const std::string& target, const std::string& reason) override;

 private:
  using Dialled = std::expected<tcp::socket, HttpRefusal>;

  asio::awaitable<void> serve_dns();
  asio::awaitable<void> serve_socks();
  asio::awaitable<void> serve_target(Host host, std::uint16_t port);
  asio::awaitable<Dialled> connect_as(Authority target, std::string protocol);
  // The client's first bytes decide what becomes of the connection. False: it is over.
  asio::awaitable<bool> classify_or_end(Stream& up, tcp::socket& server, const Authority& target, std::string& http);
  asio::awaitable<bool> classify(Stream& up, tcp::socket& server, const Authority& target, std::string& http);
  Decision judge_server_name(const std::optional<std::string>& name, const Authority& target);
  void deny(const std::string& target, const std::string& protocol, const std::string& reason);

  std::shared_ptr<SandboxNetwork> network_;
  tcp::socket& client_;
  Decision judge(const Authority& target) const;
  Decision judge_connected() const;  // of `current_`, with its address

  // Of several names that an address can be for, the one that the first request is for. `http`: its beginning, which is read on as far as needed.
  asio::awaitable<Authority> named_by_host(std::string& http, Authority target);

  std::vector<std::string> names_;            // with real answers: those that the address can be for
  std::optional<policy::IpAddress> pinned_;   // and that address
  std::optional<Authority> current_;          // what it is connected to
  std::optional<policy::IpAddress> address_;  // and where that is
  std::string protocol_;                      // as which
  std::chrono::steady_clock::time_point since_;
  std::uint64_t up_ = 0, down_ = 0;           // bytes
  std::optional<policy::NetworkRule> once_;   // what somebody has allowed for this connection
};

}  // namespace sandy::proxy
