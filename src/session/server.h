// `sandy serve`: one client process's sandboxes, or one that is kept, asked for over Unix sockets (PROTOCOL.md, "Client to sandy serve").
#pragma once

#include <boost/asio.hpp>
#include <chrono>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "base/unique_fd.h"
#include "host/kept_socket.h"
#include "session/process.h"
#include "session/sandbox.h"
#include "session/wire/quiet.h"

namespace sandy::session {

class ClientConnection;

class Server {
 public:
  explicit Server(asio::io_context& io) : io_(io) {}

  // Serves until the first connection closes or its peer process is gone; then closes all sandboxes.
  asio::awaitable<void> run(UniqueFd first);
  // Serves one sandbox that outlives whoever made it: until that has ended, or `first` closes before there is one.
  asio::awaitable<void> run_kept(UniqueFd first);

  asio::io_context& io() { return io_; }
  wire::Quiet& quiet() { return *quiet_; }
  void add_connection(UniqueFd socket);
  void forget(const std::shared_ptr<ClientConnection>& connection) { connections_.erase(connection); }

  void add(const std::shared_ptr<Sandbox>& sandbox) { sandboxes_[sandbox->id()].sandbox = sandbox; }
  std::shared_ptr<Sandbox> find(std::string_view id) const;
  Processes& processes_of(const Sandbox& sandbox) { return sandboxes_[sandbox.id()].processes; }
  asio::awaitable<void> close(std::string id, bool stop = false);

  // Whether it is for a kept sandbox, and has none yet.
  bool may_keep() const { return keeps_ && sandboxes_.empty() && making_.expired(); }
  // While one of these is there, it makes one.
  std::shared_ptr<void> making() {
    auto out = std::make_shared<int>();
    making_ = out;
    return out;
  }
  // Its one sandbox, which also listens at a socket from now on.
  void keep(const std::shared_ptr<Sandbox>& sandbox, host::KeptSocket socket, std::chrono::milliseconds idle);
  // Somebody has asked for something.
  void note_use() { last_use_ = std::chrono::steady_clock::now(); }

 private:
  asio::awaitable<void> watch_peer(int socket);
  asio::awaitable<void> serve_first(std::shared_ptr<ClientConnection> connection);
  asio::awaitable<void> accept_connections(UniqueFd listener);
  asio::awaitable<void> watch_use(std::shared_ptr<Sandbox> sandbox, std::chrono::milliseconds idle);
  asio::awaitable<void> close_all(std::string reason);
  asio::awaitable<void> let_answers_out();
  void remove_socket();

  asio::io_context& io_;
  std::shared_ptr<wire::Quiet> quiet_ = std::make_shared<wire::Quiet>(io_.get_executor());
  std::set<std::shared_ptr<ClientConnection>> connections_;
  struct Entry {
    std::shared_ptr<Sandbox> sandbox;
    Processes processes;
  };
  std::map<std::string, Entry, std::less<>> sandboxes_;
  bool keeps_ = false;
  std::weak_ptr<void> making_;
  std::string socket_;  // of the kept sandbox
  asio::steady_timer over_{io_, asio::steady_timer::time_point::max()};  // the kept sandbox is
  std::chrono::steady_clock::time_point last_use_ = std::chrono::steady_clock::now();
};

}  // namespace sandy::session
