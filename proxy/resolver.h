// The host's resolver: asked when something is dialled, never before.
#pragma once

#include <boost/asio.hpp>
#include <expected>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/unique_fd.h"
#include "policy/ip_address.h"

namespace sandy::proxy {

namespace asio = boost::asio;

// Of a file of settings, at most 4 MiB.
std::string settings_text(const UniqueFd& file);

// c-ares in an Asio loop. It reads resolv.conf(5) when it is made: the proxy has no file system after that. What changes then, and the hosts file's
// text, is given to it. Names with a dot in them are asked for as they are, those without also with the search domains.
class Resolver {
 public:
  // `hosts`: as hosts(5). Whatever it says, policy::kThisMachine is the loopback addresses.
  Resolver(asio::any_io_executor executor, std::string_view hosts);
  ~Resolver();
  Resolver(const Resolver&) = delete;
  Resolver& operator=(const Resolver&) = delete;

  // Other name servers than the host's, whatever those become: "ADDRESS:PORT", with commas. False if that is none.
  bool use_servers(const std::string& servers);
  // The host's files as they have become: resolv.conf(5), of which a text without a name server leaves those that were, and hosts(5).
  void use_settings(std::string_view resolv_conf, std::string_view hosts);

  // The addresses of a canonical name, IPv6 and IPv4 as the resolver orders them. The error is a reason in words.
  asio::awaitable<std::expected<std::vector<policy::IpAddress>, std::string>> resolve(std::string name);

 private:
  class Channel;
  std::shared_ptr<Channel> channel_;
  std::map<std::string, std::vector<policy::IpAddress>, std::less<>> hosts_;
  std::optional<std::vector<std::string>> search_;  // nothing: as c-ares has read them
  bool has_own_servers_ = false;
};

}  // namespace sandy::proxy
