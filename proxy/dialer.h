// Connects to what was allowed.
#pragma once

#include <boost/asio.hpp>
#include <cstdint>
#include <expected>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "proxy/allowlist.h"
#include "proxy/authority.h"
#include "proxy/resolver.h"

namespace sandy::proxy {

using tcp = asio::ip::tcp;

struct DialFailure {
  bool refused = false;  // by the policy, once the name's addresses were known
  std::string reason;
};

struct DialledSocket {
  tcp::socket socket;
  policy::IpAddress address;  // that was judged
};

class Dialer {
 public:
  Dialer(asio::any_io_executor executor, Resolver& resolver) : executor_(std::move(executor)), resolver_(resolver) {}

  // For tests: what is dialled in the place of a port, and of an address that was judged.
  void map_ports(std::map<std::uint16_t, std::uint16_t> ports) { ports_ = std::move(ports); }
  void map_addresses(std::map<policy::IpAddress, policy::IpAddress> addresses) { addresses_ = std::move(addresses); }

  // Resolves once, leaves out each address that may not be dialled, and dials the others themselves, by turns (RFC 8305). The allowlist has
  // allowed `host` already.
  // `pinned`: an address of `host` that the client was told; it is the one that is judged and dialled.
  asio::awaitable<std::expected<DialledSocket, DialFailure>> dial(Host host, std::uint16_t port, std::optional<policy::IpAddress> pinned, Allowlist allowlist);

  // Whether what is connected still may be.
  Decision decide(const Host& host, const policy::IpAddress& address, std::uint16_t port, const Allowlist& allowlist) const;

  // What a resolver in the sandbox may be told of an allowed name.
  asio::awaitable<std::expected<std::vector<policy::IpAddress>, DialFailure>> addresses_of(std::string name, Allowlist allowlist);

 private:
  asio::any_io_executor executor_;
  Resolver& resolver_;
  std::map<std::uint16_t, std::uint16_t> ports_;
  std::map<policy::IpAddress, policy::IpAddress> addresses_;
};

}  // namespace sandy::proxy
