// A port of a sandbox that this machine can connect to.
#pragma once

#include <boost/asio.hpp>
#include <cstdint>
#include <deque>
#include <memory>
#include <set>

#include "base/unique_fd.h"

namespace sandy::proxy {

namespace asio = boost::asio;
using tcp = asio::ip::tcp;

// Unconnected TCP sockets that were made in a sandbox's network namespace, and so connect there: one of IPv4, and one of IPv6 where there is that. Each serves
// one connection after another (connect(2), AF_UNSPEC).
struct InwardPair {
  UniqueFd v4, v6;
};

// Shared by all published ports of a sandbox.
using InwardSockets = std::deque<InwardPair>;

class PublishedPort : public std::enable_shared_from_this<PublishedPort> {
 public:
  // `listener`: a socket that listens on this machine. `port`: in the sandbox, at its 127.0.0.1 or ::1.
  PublishedPort(asio::any_io_executor executor, UniqueFd listener, std::uint16_t port, std::shared_ptr<InwardSockets> sockets);
  void start();
  void close();

 private:
  asio::awaitable<void> accept();
  asio::awaitable<void> serve(tcp::socket client);

  asio::any_io_executor executor_;
  tcp::acceptor acceptor_;
  std::uint16_t port_;
  std::shared_ptr<InwardSockets> sockets_;
  std::set<tcp::socket*> clients_;
};

}  // namespace sandy::proxy
