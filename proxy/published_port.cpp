#include "proxy/published_port.h"

#include <sys/socket.h>

#include "proxy/relay.h"

namespace sandy::proxy {
namespace {

constexpr auto kNoError = asio::as_tuple(asio::use_awaitable);
constexpr std::chrono::seconds kIdleLimit = std::chrono::hours(2);

// Unconnected again, for the next one.
UniqueFd freed(tcp::socket& socket) {
  boost::system::error_code error;
  UniqueFd fd(socket.release(error));
  sockaddr none{};
  none.sa_family = AF_UNSPEC;
  if (error || ::connect(fd.get(), &none, sizeof none) != 0) return UniqueFd();
  return fd;
}

tcp::endpoint loopback(tcp protocol, std::uint16_t port) {
  if (protocol == tcp::v6()) return {asio::ip::address_v6::loopback(), port};
  return {asio::ip::address_v4::loopback(), port};
}

asio::awaitable<bool> try_connect(tcp::socket& socket, tcp::endpoint to) {
  const auto [error] = co_await socket.async_connect(to, kNoError);
  co_return !error;
}

}  // namespace

PublishedPort::PublishedPort(asio::any_io_executor executor, UniqueFd listener, std::uint16_t port, std::shared_ptr<InwardSockets> sockets)
    : executor_(executor), acceptor_(executor, tcp::v4(), listener.release()), port_(port), sockets_(std::move(sockets)) {}

void PublishedPort::start() { asio::co_spawn(executor_, accept(), asio::detached); }

void PublishedPort::close() {
  boost::system::error_code ignored;
  acceptor_.close(ignored);
  for (tcp::socket* client : clients_) reset(*client);
}

asio::awaitable<void> PublishedPort::accept() {
  auto self = shared_from_this();
  asio::steady_timer pause(executor_);
  while (acceptor_.is_open()) {
    auto [error, client] = co_await acceptor_.async_accept(kNoError);
    if (!acceptor_.is_open()) break;
    if (error) {
      pause.expires_after(std::chrono::milliseconds(20));
      co_await pause.async_wait(kNoError);
      continue;
    }
    client.set_option(tcp::no_delay(true), error);
    asio::co_spawn(executor_, self->serve(std::move(client)), asio::detached);
  }
}

asio::awaitable<void> PublishedPort::serve(tcp::socket client) {
  auto self = shared_from_this();
  if (sockets_->empty()) {
    reset(client);
    co_return;
  }
  clients_.insert(&client);
  InwardPair pair = std::move(sockets_->front());
  sockets_->pop_front();
  tcp::socket v4(executor_, tcp::v4(), pair.v4.release());
  tcp::socket v6(executor_);
  const bool has_v6 = static_cast<bool>(pair.v6);
  if (has_v6) v6.assign(tcp::v6(), pair.v6.release());
  const bool by_v4 = co_await try_connect(v4, loopback(tcp::v4(), port_));
  bool connected = by_v4;
  if (!by_v4 && has_v6) {
    const bool by_v6 = co_await try_connect(v6, loopback(tcp::v6(), port_));
    connected = by_v6;
  }
  bool whole = false;
  if (connected && client.is_open()) {
    Stream up, down;
    tcp::socket& server = by_v4 ? v4 : v6;
    whole = co_await relay(client, server, up, down, kIdleLimit);
  }
  clients_.erase(&client);
  if (!whole) reset(client);
  pair.v4 = freed(v4);
  if (has_v6) pair.v6 = freed(v6);
  if (pair.v4) sockets_->push_back(std::move(pair));
}

}  // namespace sandy::proxy
