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

asio::awaitable<bool> try_connect(tcp::socket& socket, tcp::endpoint to) {
  const auto [error] = co_await socket.async_connect(to, kNoError);
  co_return !error;
}

asio::awaitable<void> serve(asio::any_io_executor executor, tcp::socket client, std::uint16_t port, std::shared_ptr<InwardSockets> sockets) {
  if (sockets->empty()) {
    reset(client);
    co_return;
  }
  InwardPair pair = std::move(sockets->front());
  sockets->pop_front();
  tcp::socket v4(executor, tcp::v4(), pair.v4.release());
  tcp::socket v6(executor);
  const bool has_v6 = static_cast<bool>(pair.v6);
  if (has_v6) v6.assign(tcp::v6(), pair.v6.release());
  const bool by_v4 = co_await try_connect(v4, tcp::endpoint(asio::ip::address_v4::loopback(), port));
  bool connected = by_v4;
  if (!by_v4 && has_v6) connected = co_await try_connect(v6, tcp::endpoint(asio::ip::address_v6::loopback(), port));
  bool whole = false;
  if (connected) {
    Stream up, down;
    whole = co_await relay(client, by_v4 ? v4 : v6, up, down, kIdleLimit);
  }
  if (!whole) reset(client);
  pair.v4 = freed(v4);
  if (has_v6) pair.v6 = freed(v6);
  if (pair.v4) sockets->push_back(std::move(pair));
}

}  // namespace

PublishedPort::PublishedPort(asio::any_io_executor executor, UniqueFd listener, std::uint16_t port, std::shared_ptr<InwardSockets> sockets)
    : executor_(executor), acceptor_(executor, tcp::v4(), listener.release()), port_(port), sockets_(std::move(sockets)) {}

void PublishedPort::start() { asio::co_spawn(executor_, accept(), asio::detached); }

void PublishedPort::close() {
  boost::system::error_code ignored;
  acceptor_.close(ignored);
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
    asio::co_spawn(executor_, serve(executor_, std::move(client), port_, sockets_), asio::detached);
  }
}

}  // namespace sandy::proxy
