// Serves HTTP/1 on a client's connection, RFC 9112, as a forward proxy or in the place of the server that the client meant. Every request is judged by
// itself, and what a server gets is written anew from what was judged: a byte that was read and not judged reaches nobody.
#pragma once

#include <boost/asio.hpp>
#include <chrono>
#include <cstdint>
#include <expected>
#include <optional>
#include <string>

#include "proxy/authority.h"
#include "proxy/http_exchange.h"

namespace sandy::proxy {

// Who decides, dials and relays. It outlives the session.
class HttpOwner {
 public:
  virtual ~HttpOwner() = default;

  // Judges the target, whose port is set, and connects to it. `tunnel`: for CONNECT. A refusal of status 403 is the policy's.
  virtual asio::awaitable<std::expected<tcp::socket, HttpRefusal>> connect(Authority target, bool tunnel) = 0;

  // So many bytes have gone each way on the connection that connect() made last.
  virtual void count(std::uint64_t up, std::uint64_t down) = 0;

  // That connection has ended, and was not given to tunnel().
  virtual void closed() = 0;

  // Takes over once a CONNECT was answered with 200, or a server has switched to WebSocket (`upgraded`), and closes both. `from_client` and `from_server` were
  // read already and not yet passed on.
  virtual asio::awaitable<void> tunnel(tcp::socket& client, std::string from_client, tcp::socket& server, std::string from_server, Authority target,
                                       bool upgraded) = 0;

  // A request that is malformed, or not for this connection: for the log. `target` is empty where there is none to be told.
  virtual void note_refusal(const std::string& target, const std::string& reason) = 0;
};

struct HttpTimeouts {
  std::chrono::milliseconds head = std::chrono::seconds(30);      // for a request's head, from its first byte on
  std::chrono::milliseconds idle = std::chrono::minutes(5);       // between requests
  std::chrono::milliseconds progress = std::chrono::minutes(10);  // of a body or a response, without a byte
  std::chrono::milliseconds linger = std::chrono::seconds(1);     // for a client to take the last answer and close
};

// Until the connection ends; it is closed then, or was given to tunnel(). `first`: bytes that were read from the client already.
//   fixed        the client takes this for the server: every Host must name it (its port may be absent if it is 80), and there is no CONNECT
//   none fixed   a forward proxy: absolute http: targets, and CONNECT
// `upstream`: a connection to `fixed`, where there is one already. The sockets' executor must not run two handlers at a time.
asio::awaitable<void> serve_http(tcp::socket& client, std::string first, std::optional<Authority> fixed, std::optional<tcp::socket> upstream, HttpOwner& owner,
                                 HttpTimeouts timeouts = HttpTimeouts());

}  // namespace sandy::proxy
