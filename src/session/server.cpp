#include "session/server.h"

#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "session/client_connection.h"
#include "session/kept.h"

namespace sandy::session {
namespace {

using namespace asio::experimental::awaitable_operators;

constexpr auto kNoError = asio::as_tuple(asio::use_awaitable);
constexpr auto kAcceptPause = std::chrono::milliseconds(100), kAnswerPause = std::chrono::milliseconds(10);

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

asio::awaitable<void> Server::close(std::string id, bool stop) {
  const auto it = sandboxes_.find(id);
  if (it == sandboxes_.end()) co_return;
  const auto sandbox = it->second.sandbox;
  if (!stop) sandbox->discard();
  if (sandbox->alive()) remove_socket();
  co_await sandbox->close(stop ? "the sandbox was stopped" : "the sandbox was closed");
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
  co_await close_all("the client process is gone");
  io_.stop();
}

asio::awaitable<void> Server::close_all(std::string reason) {
  // All at once: each waits for its processes.
  std::size_t left = sandboxes_.size();
  asio::steady_timer all_closed(io_, asio::steady_timer::time_point::max());
  for (const auto& [id, entry] : sandboxes_) {
    asio::co_spawn(
        io_, [sandbox = entry.sandbox, &reason]() -> asio::awaitable<void> { co_await sandbox->close(reason); },
        [&](std::exception_ptr) {
          if (--left == 0) all_closed.cancel();
        });
  }
  while (left > 0) co_await all_closed.async_wait(kNoError);
  co_await Network::shutdown();
  Limits::shutdown();
}

void Server::keep(const std::shared_ptr<Sandbox>& sandbox, host::KeptSocket socket, std::chrono::milliseconds idle) {
  add(sandbox);
  note_use();
  socket_ = socket.path;
  auto listening = accept_connections(std::move(socket.listener));
  asio::co_spawn(io_, std::move(listening), asio::detached);
  asio::co_spawn(
      io_, [sandbox] { return sandbox->wait_closed(); }, [this](std::exception_ptr) { over_.cancel(); });
  if (idle.count() > 0) asio::co_spawn(io_, watch_use(sandbox, idle), asio::detached);
}

asio::awaitable<void> Server::accept_connections(UniqueFd listener) {
  asio::posix::stream_descriptor socket(io_, listener.release());
  while (true) {
    const auto [error] = co_await socket.async_wait(asio::posix::descriptor_base::wait_read, kNoError);
    if (error) co_return;
    UniqueFd connection(::accept4(socket.native_handle(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!connection) {
      // Without descriptors for it, it stays in the queue: not asked again at once.
      asio::steady_timer pause(io_, kAcceptPause);
      co_await pause.async_wait(kNoError);
    } else if (host::peer_is_ours(connection.get())) {
      add_connection(std::move(connection));
    }
  }
}

asio::awaitable<void> Server::watch_use(std::shared_ptr<Sandbox> sandbox, std::chrono::milliseconds idle) {
  asio::steady_timer timer(io_);
  while (sandbox->alive()) {
    for (const auto& connection : connections_) {
      if (connection->busy()) note_use();
    }
    const auto until = last_use_ + idle;
    if (until <= std::chrono::steady_clock::now()) {
      remove_socket();
      co_await sandbox->close("the sandbox was not used for its idle timeout");
      co_return;
    }
    timer.expires_at(until);
    co_await timer.async_wait(kNoError);
  }
}

asio::awaitable<void> Server::serve_first(std::shared_ptr<ClientConnection> connection) {
  co_await connection->run();
  while (!sandboxes_.empty()) co_await over_.async_wait(kNoError);
}

// Whoever asked for the end is to hear of it.
asio::awaitable<void> Server::let_answers_out() {
  asio::steady_timer pause(io_);
  for (int tries = 0; tries < 100; ++tries) {
    if (std::ranges::none_of(connections_, [](const auto& connection) { return connection->busy(); })) co_return;
    pause.expires_after(kAnswerPause);
    co_await pause.async_wait(kNoError);
  }
}

// While the sandbox has its state directory, nobody else can listen under its id: it is our own.
void Server::remove_socket() {
  if (!socket_.empty()) ::unlink(std::exchange(socket_, {}).c_str());
}

asio::awaitable<void> Server::run_kept(UniqueFd first) {
  keeps_ = true;
  auto connection = std::make_shared<ClientConnection>(*this, std::move(first));
  connections_.insert(connection);
  asio::signal_set signals(io_, SIGTERM, SIGINT, SIGHUP);
  co_await (serve_first(connection) || over_.async_wait(kNoError) || signals.async_wait(kNoError));
  co_await let_answers_out();
  for (const auto& [id, entry] : sandboxes_) {
    if (entry.sandbox->alive()) remove_socket();
  }
  co_await close_all("the sandbox's server was told to end");
  // One that ended by itself has left it. By its name alone it could be one's by now that goes on with the sandbox.
  if (auto swept = sweep_kept(); !swept) std::fprintf(stderr, "sandy: %s\n", swept.error().text().c_str());
  io_.stop();
}

}  // namespace sandy::session
