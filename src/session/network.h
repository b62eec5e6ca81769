// The network of this process's sandboxes: sandy-proxy, which is started with the first sandbox that has one and serves all.
#pragma once

#include <sys/types.h>

#include <boost/asio.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/unique_fd.h"
#include "host/name_settings.h"
#include "session/wire/channel.h"

namespace sandy::session {

namespace asio = boost::asio;

// What sandy-launch sends (launcher/network.h).
struct NamespaceSockets {
  std::vector<UniqueFd> listeners;            // none: it has sent nothing
  std::vector<std::vector<UniqueFd>> inward;  // pairs
};
NamespaceSockets receive_sockets(const UniqueFd& socket);

class Network : public std::enable_shared_from_this<Network> {
 public:
  // A `network`, `question` or `expired` event of the proxy (PROTOCOL.md), or nothing when the sandbox's network is gone.
  using OnEvent = std::function<void(const wire::Frame*)>;

  // The one that runs, or a new one.
  static Result<std::shared_ptr<Network>> shared(asio::any_io_executor executor);
  // Ends it, and returns when its process is gone.
  static asio::awaitable<void> shutdown();

  // Returns when the proxy has given up its rights and accepts. The error: what it said instead.
  asio::awaitable<Result<void>> ready();

  // `sockets`: of sandy-launch. `rules`: plan::NetworkPlan's. The number that the sandbox has here.
  std::uint32_t add(NamespaceSockets sockets, const std::vector<std::string>& rules, OnEvent on_event);
  // `port` of the sandbox can be connected to at `listener`.
  void publish(std::uint32_t id, UniqueFd listener, std::uint16_t port);
  // Returns when its connections have been cut, and their ends told.
  asio::awaitable<void> remove(std::uint32_t id);
  // Returns when the proxy goes by them. False: it is gone, or has not taken them.
  asio::awaitable<bool> set_rules(std::uint32_t id, std::vector<std::string> rules);
  void answer(std::uint32_t id, std::uint32_t question, bool allow);
  // Returns when every event of what happened before has been given out. A proxy that doesn't answer in time is not waited for: then some may be missing.
  asio::awaitable<void> sync();

  bool alive() const { return alive_; }

 private:
  explicit Network(asio::any_io_executor executor)
      : executor_(executor), ended_(executor), changed_(executor, asio::steady_timer::time_point::max()), reaped_(executor, asio::steady_timer::time_point::max()), names_timer_(executor) {}
  asio::awaitable<void> read_events();
  asio::awaitable<void> watch_names();
  asio::awaitable<void> stop();
  asio::awaitable<bool> ask(std::uint32_t id, wire::Json header, std::string payload, std::chrono::milliseconds limit);
  void tell(std::uint32_t id, const wire::Frame* frame);
  void lose();

  asio::any_io_executor executor_;
  pid_t pid_ = -1;
  asio::posix::stream_descriptor ended_;  // the proxy's pidfd
  UniqueFd messages_;
  std::shared_ptr<wire::Channel> channel_;
  host::NameSettings names_;
  bool alive_ = false, ready_ = false, stopping_ = false;
  asio::steady_timer changed_, reaped_, names_timer_;  // changed_: ready, or gone
  std::uint32_t next_id_ = 1;
  std::map<std::uint32_t, OnEvent> sandboxes_;
  // A request without an answer.
  struct Waiting {
    explicit Waiting(const asio::any_io_executor& executor) : answered(executor) {}
    asio::steady_timer answered;
    std::string_view answer;  // "done", "refused"
  };
  std::map<std::uint32_t, std::shared_ptr<Waiting>> waiting_;
};

// The name and the value of the setting with which tests make servers of their own the world (tests/rig). Where it is set, every sandbox with a
// network says so in `degraded`.
inline constexpr const char* kTestNetworkVariable = "SANDY_UNSAFE_TEST_NETWORK";
inline constexpr const char* kTestNetworkKey = "network.unsafe_test_network";

}  // namespace sandy::session
