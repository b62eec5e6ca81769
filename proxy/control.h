// The proxy's connection to `sandy`: which sandboxes there are, by which rules, and what happened. Frames of session/wire; PROTOCOL.md, "sandy to
// sandy-proxy".
#pragma once

#include <boost/asio.hpp>
#include <map>
#include <memory>

#include "proxy/sandbox_network.h"
#include "session/wire/channel.h"

namespace sandy::proxy {

class Control {
 public:
  // `descriptors`: how many this process may have.
  Control(asio::any_io_executor executor, UniqueFd socket, Resolver& resolver, std::size_t descriptors);

  // Until `sandy` closes its end.
  asio::awaitable<void> run();

 private:
  void handle(const wire::Frame& frame);
  void use_test_network(const wire::Frame& frame);
  void add(const wire::Frame& frame);
  asio::awaitable<void> remove(std::uint32_t id, std::shared_ptr<SandboxNetwork> network);
  void let_in(const wire::Frame& frame);

  std::shared_ptr<wire::Channel> channel_;
  Resolver& resolver_;
  Dialer dialer_;
  std::vector<policy::IpNetwork> counted_as_public_;
  Shared shared_;
  std::map<std::uint32_t, std::shared_ptr<SandboxNetwork>> networks_;  // one may outlive its place here, until its last connection has ended
};

// The rules as they are on the wire: a line each, "allow RULE", "deny RULE" or "private RULE", and maybe "ask" and "real". None: one of them is none.
std::optional<Allowlist> parse_rules(std::string_view lines);

}  // namespace sandy::proxy
