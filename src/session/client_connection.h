// One connection of a client: one request at a time. Every operation of PROTOCOL.md's "Client to sandy serve" is taken here.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "session/server.h"
#include "session/wire/channel.h"

namespace sandy::session {

class ClientConnection : public EventSink, public ProcessReader, public std::enable_shared_from_this<ClientConnection> {
 public:
  ClientConnection(Server& server, UniqueFd socket);

  // Serves until the client closes; what is open then is cancelled.
  asio::awaitable<void> run();
  // Whether somebody waits for an answer to a request, of a question's asker apart.
  bool busy() const { return handling_ || active_ || attached_; }
  void on_event(wire::Frame event) override;
  void on_process_event(wire::Json header, std::string payload) override;

 private:
  asio::awaitable<void> handle(wire::Frame frame);
  asio::awaitable<void> create(const wire::Frame& frame);
  asio::awaitable<void> create_kept(const wire::Frame& frame);
  asio::awaitable<void> take_questions(const wire::Frame& frame);
  void ask(std::uint32_t question, const std::string& target);
  asio::awaitable<void> change_rules(const wire::Frame& frame);
  asio::awaitable<void> change_limits(const wire::Frame& frame);
  void tell_usage(const wire::Frame& frame);
  void describe(const wire::Frame& frame);
  void spawn(wire::Frame frame);
  void attach(const wire::Frame& frame);
  void list_processes(const wire::Frame& frame);
  void change_process(const wire::Frame& frame);
  std::shared_ptr<Sandbox> alive(const wire::Frame& frame);
  std::shared_ptr<Process> process(const wire::Frame& frame);
  void show_plan(const wire::Frame& frame);
  void read_named_policy(const wire::Frame& frame);
  void forward(wire::Frame frame);
  void end(std::uint32_t id, wire::Json fields, std::string payload = {});
  void end_hello(std::uint32_t id);
  void end_created(std::uint32_t id, const Sandbox& sandbox);
  void end_error(std::uint32_t id, const char* error, const std::string& detail);

  Server& server_;
  std::shared_ptr<wire::Channel> channel_;
  struct Active {
    std::uint32_t client_id = 0, agent_id = 0;
    std::shared_ptr<Sandbox> sandbox;
  };
  std::optional<Active> active_;
  bool handling_ = false;
  // The process that this connection is attached to, and the request that its events are of.
  struct AttachedProcess {
    std::uint32_t client_id = 0;
    std::shared_ptr<Process> process;
  };
  std::optional<AttachedProcess> attached_;
  // Whose questions go to this connection, and the request that they are events of.
  struct Questions {
    std::uint32_t client_id = 0;
    std::shared_ptr<Sandbox> sandbox;
  };
  std::optional<Questions> questions_;
};

}  // namespace sandy::session
