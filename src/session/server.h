// `sandy serve`: one client process's sandboxes, asked for over Unix sockets (PROTOCOL.md, "Client to sandy serve").
#pragma once

#include <boost/asio.hpp>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "base/unique_fd.h"
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

  asio::io_context& io() { return io_; }
  wire::Quiet& quiet() { return *quiet_; }
  void add_connection(UniqueFd socket);
  void forget(const std::shared_ptr<ClientConnection>& connection) { connections_.erase(connection); }

  void add(const std::shared_ptr<Sandbox>& sandbox) { sandboxes_[sandbox->id()].sandbox = sandbox; }
  std::shared_ptr<Sandbox> find(std::string_view id) const;
  Processes& processes_of(const Sandbox& sandbox) { return sandboxes_[sandbox.id()].processes; }
  asio::awaitable<void> close(std::string id);

 private:
  asio::awaitable<void> watch_peer(int socket);

  asio::io_context& io_;
  std::shared_ptr<wire::Quiet> quiet_ = std::make_shared<wire::Quiet>(io_.get_executor());
  std::set<std::shared_ptr<ClientConnection>> connections_;
  struct Entry {
    std::shared_ptr<Sandbox> sandbox;
    Processes processes;
  };
  std::map<std::string, Entry, std::less<>> sandboxes_;
};

}  // namespace sandy::session
