// A connection of this process to the server of a kept sandbox (session/PROTOCOL.md, "Client to sandy serve").
#pragma once

#include <boost/asio.hpp>
#include <functional>
#include <memory>
#include <string>

#include "base/error.h"
#include "cli/relay.h"
#include "session/kept.h"
#include "session/wire/channel.h"

namespace sandy::cli {

class KeptClient : public CommandLink, public std::enable_shared_from_this<KeptClient> {
 public:
  // Of a sandbox, by id or name, that runs.
  static Result<std::shared_ptr<KeptClient>> connect(asio::io_context& io, const std::string& id_or_name);
  // To a server that was started with the other end.
  KeptClient(asio::io_context& io, UniqueFd socket);

  const session::KeptRecord& record() const { return record_; }

  // A request's `end`, or why there is none; its other events go to `on_event`. `header` has `op`; `sandbox` is put in.
  asio::awaitable<Result<wire::Frame>> request(wire::Json header, std::string payload = {}, std::function<void(wire::Frame)> on_event = {});
  // A request's first event, which may be its `end`; what follows is not read.
  asio::awaitable<Result<wire::Frame>> begin(wire::Json header, std::string payload);
  // Opens a request whose events go to a relay, which follows it.
  void relay(const std::shared_ptr<Relay>& to, wire::Json header, std::string payload);

  void follow(wire::Json header, std::string payload) override;
  void answer(std::uint32_t question, bool allow, bool always) override;

 private:
  asio::awaitable<void> pass_events(std::shared_ptr<Relay> to);
  void open(wire::Json header, const std::string& payload);

  asio::io_context& io_;
  std::shared_ptr<wire::Channel> channel_;
  session::KeptRecord record_;
  std::uint32_t id_ = 0;
};

// Runs a verb's coroutine, which returns the exit status.
int run_in_loop(const std::function<asio::awaitable<int>(asio::io_context&)>& verb);

// What a failed request's `end` says.
Error error_of(const wire::Json& end);

// Stops sandboxes, by id or name; with `remove` nothing is left of them. Returns the exit status.
int end_kept(const std::vector<std::string>& ids, bool remove, bool also_running);

}  // namespace sandy::cli
