#include "http_session_rig.h"

#include <boost/asio/experimental/awaitable_operators.hpp>

namespace sandy::proxy {
namespace {

using namespace asio::experimental::awaitable_operators;

asio::awaitable<void> pass_on(tcp::socket& from, tcp::socket& to, std::string bytes) {
  constexpr auto kNoError = asio::as_tuple(asio::use_awaitable);
  boost::system::error_code ignored;
  while (true) {
    const auto [failed, written] = co_await asio::async_write(to, asio::buffer(bytes), kNoError);
    if (failed) break;
    bytes.resize(4096);
    const auto [error, n] = co_await from.async_read_some(asio::buffer(bytes), kNoError);
    if (error) break;
    bytes.resize(n);
  }
  to.shutdown(tcp::socket::shutdown_send, ignored);
}

}  // namespace

asio::awaitable<void> RigOwner::tunnel(tcp::socket& client, std::string from_client, tcp::socket& server, std::string from_server, Authority target, bool upgraded) {
  note(tunnels_, tunnel_of(from_client, from_server, target, upgraded));
  auto up = pass_on(client, server, std::move(from_client));
  auto down = pass_on(server, client, std::move(from_server));
  co_await (std::move(up) && std::move(down));
  client.close();
}

}  // namespace sandy::proxy
