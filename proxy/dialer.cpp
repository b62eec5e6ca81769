#include "proxy/dialer.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "base/unique_fd.h"

namespace sandy::proxy {
namespace {

using namespace std::chrono_literals;
using policy::IpAddress;
using Dialled = std::expected<DialledSocket, DialFailure>;

constexpr auto kNoError = asio::as_tuple(asio::use_awaitable);
constexpr auto kNextAttempt = 250ms;  // RFC 8305, section 5
constexpr auto kAttemptLimit = 15s;
constexpr std::size_t kMaxAddresses = 8;  // each may have a socket at a time

socklen_t fill(sockaddr_storage& out, const IpAddress& address, std::uint16_t port) {
  std::memset(&out, 0, sizeof out);
  if (address.v6) {
    sockaddr_in6 in{};
    in.sin6_family = AF_INET6;
    in.sin6_port = htons(port);
    std::memcpy(&in.sin6_addr, address.bytes.data(), 16);
    std::memcpy(&out, &in, sizeof in);
    return sizeof in;
  }
  sockaddr_in in{};
  in.sin_family = AF_INET;
  in.sin_port = htons(port);
  std::memcpy(&in.sin_addr, address.bytes.data(), 4);
  std::memcpy(&out, &in, sizeof in);
  return sizeof in;
}

// Whether the address is one of this machine's: then it is also the one that the kernel would send from. A datagram socket sends nothing here. Where that
// can't be found out, it is.
bool is_own(const IpAddress& address) {
  const UniqueFd fd(::socket(address.v6 ? AF_INET6 : AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_storage to, from{};
  socklen_t size = fill(to, address, 9);
  if (!fd) return errno != EAFNOSUPPORT;
  if (::connect(fd.get(), reinterpret_cast<sockaddr*>(&to), size) != 0) return false;
  size = sizeof from;
  if (::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&from), &size) != 0) return true;
  if (address.v6) {
    sockaddr_in6 in;
    std::memcpy(&in, &from, sizeof in);
    return std::memcmp(&in.sin6_addr, address.bytes.data(), 16) == 0;
  }
  sockaddr_in in;
  std::memcpy(&in, &from, sizeof in);
  return std::memcmp(&in.sin_addr, address.bytes.data(), 4) == 0;
}

asio::ip::address to_asio(const IpAddress& address) {
  if (address.v6) {
    asio::ip::address_v6::bytes_type bytes;
    std::ranges::copy(address.bytes, bytes.begin());
    return asio::ip::address_v6(bytes);
  }
  asio::ip::address_v4::bytes_type bytes;
  std::copy_n(address.bytes.begin(), 4, bytes.begin());
  return asio::ip::address_v4(bytes);
}

// One IPv6, one IPv4, and so on, each family in its own order.
std::vector<IpAddress> by_turns(const std::vector<IpAddress>& addresses) {
  std::vector<IpAddress> six, four, out;
  for (const auto& address : addresses) (address.v6 ? six : four).push_back(address);
  for (std::size_t i = 0; i < std::max(six.size(), four.size()); ++i) {
    if (i < six.size()) out.push_back(six[i]);
    if (i < four.size()) out.push_back(four[i]);
  }
  if (out.size() > kMaxAddresses) out.resize(kMaxAddresses);
  return out;
}

// Attempts that run at the same time. The first to succeed wins; the others' sockets close with them.
struct Race {
  explicit Race(const asio::any_io_executor& executor) : changed(executor) {}
  asio::steady_timer changed;
  std::vector<std::shared_ptr<tcp::socket>> sockets;
  std::vector<IpAddress> addresses;
  std::optional<std::size_t> winner;
  std::size_t running = 0;
  int error = 0;
};

void attempt(const std::shared_ptr<Race>& race, const asio::any_io_executor& executor, const IpAddress& address, const IpAddress& dialled, std::uint16_t port) {
  const std::size_t index = race->sockets.size();
  auto socket = std::make_shared<tcp::socket>(executor);
  race->sockets.push_back(socket);
  race->addresses.push_back(address);
  ++race->running;
  socket->async_connect(tcp::endpoint(to_asio(dialled), port), [race, index](boost::system::error_code error) {
    --race->running;
    if (error) {
      race->error = error.value();
    } else if (!race->winner) {
      race->winner = index;
    }
    race->changed.cancel();
  });
}

using Map = std::map<IpAddress, IpAddress>;

asio::awaitable<Dialled> connect(asio::any_io_executor executor, std::vector<IpAddress> addresses, std::uint16_t port, const Map& mapped) {
  auto race = std::make_shared<Race>(executor);
  const auto end = asio::steady_timer::clock_type::now() + kAttemptLimit;
  std::size_t next = 0;
  while (!race->winner) {
    if (next < addresses.size()) {
      const auto& address = addresses[next++];
      const auto instead = mapped.find(address);
      attempt(race, executor, address, instead == mapped.end() ? address : instead->second, port);
    }
    const auto now = asio::steady_timer::clock_type::now();
    if (race->running == 0 && next == addresses.size()) break;
    if (now >= end) {
      race->error = ETIMEDOUT;
      break;
    }
    race->changed.expires_at(next < addresses.size() ? std::min(end, now + kNextAttempt) : end);
    co_await race->changed.async_wait(kNoError);
  }
  std::shared_ptr<tcp::socket> won = race->winner ? race->sockets[*race->winner] : nullptr;
  boost::system::error_code ignored;
  for (const auto& socket : race->sockets) {
    if (socket != won) socket->close(ignored);
  }
  if (!won) co_return std::unexpected(DialFailure{false, "could not be reached: " + errno_text(race->error)});
  won->set_option(tcp::no_delay(true), ignored);
  DialledSocket out{std::move(*won), race->addresses[*race->winner]};
  co_return std::move(out);
}

}  // namespace

Decision Dialer::decide(const Host& host, const IpAddress& address, std::uint16_t port, const Allowlist& allowlist) const {
  const auto* const name = std::get_if<std::string>(&host);
  const Decision decision = name != nullptr ? allowlist.decide_dial(*name, address, port) : allowlist.decide(address, port);
  if (!decision.allowed || decision.private_target || allowlist.is_counted_as_public(address) || !is_own(address)) return decision;
  return {false, "leads to " + address.text() + ", which is this machine's own"};
}

asio::awaitable<std::expected<std::vector<IpAddress>, DialFailure>> Dialer::addresses_of(std::string name, Allowlist allowlist) {
  auto resolved = co_await resolver_.resolve(name);
  if (!resolved) co_return std::unexpected(DialFailure{false, resolved.error()});
  std::string reason;
  std::erase_if(*resolved, [&](const IpAddress& address) {
    const auto decision = allowlist.decide_answer(name, address);
    if (!decision.allowed && reason.empty()) reason = decision.reason;
    return !decision.allowed;
  });
  if (resolved->empty()) co_return std::unexpected(DialFailure{true, reason});
  co_return std::move(*resolved);
}

asio::awaitable<Dialled> Dialer::dial(Host host, std::uint16_t port, std::optional<IpAddress> pinned, Allowlist allowlist) {
  std::vector<IpAddress> addresses;
  if (pinned) {
    addresses.push_back(*pinned);
  } else if (const auto* address = std::get_if<IpAddress>(&host)) {
    addresses.push_back(*address);
  } else {
    auto resolved = co_await resolver_.resolve(std::get<std::string>(host));
    if (!resolved) co_return std::unexpected(DialFailure{false, resolved.error()});
    addresses = std::move(*resolved);
  }
  std::string reason;
  std::erase_if(addresses, [&](const IpAddress& address) {
    const auto decision = decide(host, address, port, allowlist);
    if (!decision.allowed && reason.empty()) reason = decision.reason;
    return !decision.allowed;
  });
  if (addresses.empty()) co_return std::unexpected(DialFailure{true, reason});
  const auto mapped = ports_.find(port);
  const std::uint16_t dialled_port = mapped == ports_.end() ? port : mapped->second;
  auto turns = by_turns(addresses);
  co_return co_await connect(executor_, std::move(turns), dialled_port, addresses_);
}

}  // namespace sandy::proxy
