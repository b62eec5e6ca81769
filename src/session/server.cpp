#include "session/server.h"

#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "session/client_connection.h"

namespace sandy::session {
namespace {

using namespace asio::experimental::awaitable_operators;

constexpr auto kNoError = asio::as_tuple(asio::use_awaitable);

}  // namespace

void Server::add_connection(UniqueFd socket) {
  auto connection = std::make_shared<ClientConnection>(*this, std::move(socket));
  connections_.insert(connection);
  asio::co_spawn(io_, [connection] { return connection->run(); }, asio::detached);
}

std::shared_ptr<Sandbox> Server::find(std::string_view id) const {
  const auto it = sandboxes_.find(id);
  return it == sandboxes_.end() ? nullptr : it->second.sandbox;
}

asio::awaitable<void> Server::close(std::string id) {
  const auto it = sandboxes_.find(id);
  if (it == sandboxes_.end()) co_return;
  const auto sandbox = it->second.sandbox;
  co_await sandbox->close("the sandbox was closed");
  sandboxes_.erase(id);
}

asio::awaitable<void> Server::watch_peer(int socket) {
  // The process at the other end of a socketpair is who made it: unix(7), SO_PEERCRED. A child that it forked may hold
  // the connection open after its end; the pidfd tells us all the same.
  ucred peer{};
  socklen_t length = sizeof peer;
  int fd = -1;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 && peer.pid > 0 && peer.pid != ::getpid()) {
    fd = static_cast<int>(::syscall(SYS_pidfd_open, peer.pid, 0));
    if (fd < 0) co_return;  // gone already
  } else {
    fd = ::dup(socket);  // a peer in another PID namespace: then only the connection tells
  }
  asio::posix::stream_descriptor process(io_, fd);
  if (fd >= 0 && peer.pid > 0 && peer.pid != ::getpid()) {
    co_await process.async_wait(asio::posix::descriptor_base::wait_read, kNoError);
  } else {
    asio::steady_timer never(io_, asio::steady_timer::time_point::max());
    co_await never.async_wait(kNoError);
  }
}

asio::awaitable<void> Server::run(UniqueFd first) {
  const int number = first.get();
  auto connection = std::make_shared<ClientConnection>(*this, std::move(first));
  connections_.insert(connection);
  asio::signal_set signals(io_, SIGTERM, SIGINT, SIGHUP);
  co_await (connection->run() || watch_peer(number) || signals.async_wait(kNoError));
  // All at once: each waits for its processes.
  std::size_t left = sandboxes_.size();
  asio::steady_timer all_closed(io_, asio::steady_timer::time_point::max());
  for (const auto& [id, entry] : sandboxes_) {
    asio::co_spawn(
        io_, [sandbox = entry.sandbox]() -> asio::awaitable<void> { co_await sandbox->close("the client process is gone"); },
        [&](std::exception_ptr) {
          if (--left == 0) all_closed.cancel();
        });
  }
  while (left > 0) co_await all_closed.async_wait(kNoError);
  co_await Network::shutdown();
  Limits::shutdown();
  io_.stop();
}

}  // namespace sandy::session
