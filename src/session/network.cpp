#include "session/network.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <cerrno>
#include <cstdlib>
#include <optional>

#include "base/passed_fds.h"
#include "host/children.h"
#include "host/proxy_process.h"
#include "policy/network_rule.h"

namespace sandy::session {
namespace {

using namespace std::chrono_literals;
using namespace asio::experimental::awaitable_operators;

constexpr auto kNoError = asio::as_tuple(asio::use_awaitable);
constexpr auto kExitLimit = 2s;
constexpr auto kStartLimit = 10s;
constexpr auto kSyncLimit = 2s, kRemoveLimit = 1s, kRulesLimit = 10s;
constexpr std::size_t kMaxListeners = 4;
constexpr auto kNamesLooks = 2s;

std::shared_ptr<Network>& the_one() {
  static std::shared_ptr<Network> network;
  return network;
}

std::string joined(const std::vector<std::string>& lines) {
  std::string out;
  for (const auto& line : lines) out += line + "\n";
  return out;
}

// The `test` request, from the setting's JSON: {"nameservers": ["ADDRESS:PORT"], "public": ["NETWORK"], "ports": {"80": 8080},
// "addresses": {"203.0.113.1": "127.77.0.1"}}. It is taken as a whole or not.
Result<wire::Json> test_request(const char* setting) {
  const auto wrong = [](const std::string& why) { return fail(kTestNetworkVariable, why, "unset it: it is for Sandy's own tests (tests/rig)"); };
  const auto given = wire::Json::parse(setting, nullptr, false);
  if (!given.is_object()) return wrong("is no JSON object");
  wire::Json out = wire::request("test");
  out["id"] = 0;
  for (const auto& [key, value] : given.items()) {
    if (key == "nameservers" && value.is_array()) {
      std::string servers;
      for (const auto& server : value) {
        const auto rule = policy::parse_network_rule(server.is_string() ? server.get<std::string>() : std::string());
        if (!rule || rule->kind != policy::NetworkRule::Kind::network || !rule->port) return wrong("nameservers: no ADDRESS:PORT");
        servers += (servers.empty() ? "" : ",") + rule->text();
      }
      out[key] = servers;
    } else if (key == "public" && value.is_array()) {
      for (const auto& network : value) {
        if (!network.is_string() || !policy::parse_ip_network(network.get<std::string>())) return wrong("public: no network");
      }
      out[key] = value;
    } else if (key == "addresses" && value.is_object()) {
      for (const auto& [from, to] : value.items()) {
        if (!policy::parse_ip_address(from) || !to.is_string() || !policy::parse_ip_address(to.get<std::string>())) return wrong("addresses: no address");
      }
      out[key] = value;
    } else if (key == "ports" && value.is_object()) {
      for (const auto& [from, to] : value.items()) {
        if (!to.is_number_unsigned() || to.get<std::uint64_t>() > 65'535) return wrong("ports: no port");
      }
      out[key] = value;
    } else {
      return wrong("has a key or a value of another kind: " + printable(key));
    }
  }
  return out;
}

}  // namespace

NamespaceSockets receive_sockets(const UniqueFd& socket) {
  NamespaceSockets out;
  while (out.listeners.empty()) {
    char byte = 0;
    iovec iov{&byte, 1};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int) * kMaxListeners)> control{};
    msghdr message{};
    message.msg_iov = &iov;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    // All was sent before bubblewrap began, and so before the agent answered.
    if (::recvmsg(socket.get(), &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT) != 1) break;
    auto fds = passed_fds(message);
    if (byte == 'n') {
      out.listeners = std::move(fds);
    } else {
      out.inward.push_back(std::move(fds));
    }
  }
  return out;
}

Result<std::shared_ptr<Network>> Network::shared(asio::any_io_executor executor) {
  auto& one = the_one();
  if (one && one->alive_) return one;
  std::optional<wire::Json> test;
  if (const char* const setting = std::getenv(kTestNetworkVariable); setting != nullptr && *setting != '\0') {
    auto request = test_request(setting);
    if (!request) return std::unexpected(request.error());
    test = std::move(*request);
  }
  auto started = host::start_proxy();
  if (!started) return std::unexpected(started.error());
  std::shared_ptr<Network> self(new Network(executor));
  self->pid_ = started->child.pid;
  self->ended_.assign(started->child.pidfd.release());
  self->messages_ = std::move(started->messages);
  // Looked at, and never waited for.
  ::fcntl(self->messages_.get(), F_SETFL, O_NONBLOCK);
  self->channel_ = wire::Channel::make(executor, std::move(started->control), wire::kMaxReplyPayload);
  self->alive_ = true;
  if (test) self->channel_->post(*test);
  asio::co_spawn(executor, [self] { return self->read_events(); }, asio::detached);
  asio::co_spawn(executor, [self] { return self->watch_names(); }, asio::detached);
  one = self;
  return self;
}

asio::awaitable<void> Network::shutdown() {
  auto one = std::exchange(the_one(), nullptr);
  if (one) co_await one->stop();
}

asio::awaitable<void> Network::stop() {
  auto self = shared_from_this();
  channel_->close();
  if (stopping_) {
    // Somebody else stops it: wait for that.
    while (pid_ >= 0) co_await reaped_.async_wait(kNoError);
    co_return;
  }
  stopping_ = true;
  asio::steady_timer timer(executor_, kExitLimit);
  const auto waited = co_await (ended_.async_wait(asio::posix::descriptor_base::wait_read, kNoError) || timer.async_wait(kNoError));
  if (waited.index() == 1) ::kill(pid_, SIGKILL);
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {}
  host::forget_child(pid_);
  pid_ = -1;
  reaped_.cancel();
}

void Network::tell(std::uint32_t id, const wire::Frame* frame) {
  const auto found = sandboxes_.find(id);
  if (found == sandboxes_.end()) return;
  // A copy: who is told may leave.
  const OnEvent on_event = found->second;
  on_event(frame);
}

void Network::lose() {
  alive_ = false;
  channel_->close();
  changed_.cancel();
  names_timer_.cancel();
  for (auto& [id, waiting] : std::exchange(waiting_, {})) waiting->answered.cancel();
  for (auto& [id, on_event] : std::exchange(sandboxes_, {})) on_event(nullptr);
}

asio::awaitable<void> Network::read_events() {
  auto self = shared_from_this();
  while (true) {
    const auto frame = co_await channel_->read();
    if (!frame) break;
    if (!ready_) {
      // Whatever speaks otherwise is not our proxy.
      if (frame->ev() != "ready") break;
      ready_ = true;
      changed_.cancel();
    } else if (frame->ev() == "network" || frame->ev() == "question" || frame->ev() == "expired") {
      tell(frame->id, &*frame);
    } else if (const auto found = waiting_.find(frame->id); found != waiting_.end()) {
      const auto waiting = found->second;
      waiting_.erase(found);
      waiting->answer = frame->ev() == "done" ? "done" : "refused";
      waiting->answered.cancel();
    } else if (frame->ev() == "refused") {
      // Of what nobody waits for: a sandbox without its sockets has no network.
      tell(frame->id, nullptr);
    }
  }
  lose();
  co_await stop();
}

// The proxy has no file system, and a laptop's name servers are others in another place.
asio::awaitable<void> Network::watch_names() {
  auto self = shared_from_this();
  while (alive_) {
    names_timer_.expires_after(kNamesLooks);
    co_await names_timer_.async_wait(kNoError);
    if (!alive_) co_return;
    auto files = names_.changed();
    if (!files || !files->front() || !files->back()) continue;  // (out of descriptors: names stay as they were)
    wire::Json header = wire::request("names");
    header["id"] = 0;
    channel_->post_with(header, std::string_view(), std::move(*files));
  }
}

asio::awaitable<Result<void>> Network::ready() {
  auto self = shared_from_this();
  asio::steady_timer limit(executor_, kStartLimit);
  const auto end = limit.expiry();
  while (!ready_ && alive_ && asio::steady_timer::clock_type::now() < end) co_await (changed_.async_wait(kNoError) || limit.async_wait(kNoError));
  if (ready_ && alive_) co_return Result<void>();
  std::array<char, 1'024> said;
  const ssize_t n = ::read(messages_.get(), said.data(), said.size());
  std::string why = n > 0 ? printable(std::string_view(said.data(), static_cast<std::size_t>(n))) : std::string("ended, or said nothing that it should, before it was ready");
  lose();
  co_return fail("sandy-proxy", std::move(why), "install Sandy again, all of its programs from one version in one place");
}

std::uint32_t Network::add(NamespaceSockets sockets, const std::vector<std::string>& rules, OnEvent on_event) {
  const std::uint32_t id = next_id_++;
  sandboxes_[id] = std::move(on_event);
  wire::Json header = wire::request("add");
  header["id"] = id;
  channel_->post_with(header, joined(rules), std::move(sockets.listeners));
  header["op"] = "inward";
  for (auto& pair : sockets.inward) channel_->post_with(header, std::string_view(), std::move(pair));
  return id;
}

void Network::publish(std::uint32_t id, UniqueFd listener, std::uint16_t port) {
  wire::Json header = wire::request("publish");
  header["id"] = id;
  header["port"] = port;
  std::vector<UniqueFd> fds;
  fds.push_back(std::move(listener));
  channel_->post_with(header, std::string_view(), std::move(fds));
}

void Network::answer(std::uint32_t id, std::uint32_t question, bool allow) {
  wire::Json header = wire::request("answer");
  header["id"] = id;
  header["number"] = question;
  header["allow"] = allow;
  channel_->post(header);
}

asio::awaitable<void> Network::remove(std::uint32_t id) {
  auto self = shared_from_this();
  if (!sandboxes_.contains(id)) co_return;
  co_await ask(id, wire::request("remove"), std::string(), kRemoveLimit);
  sandboxes_.erase(id);
}

asio::awaitable<bool> Network::ask(std::uint32_t id, wire::Json header, std::string payload, std::chrono::milliseconds limit) {
  auto self = shared_from_this();
  // One after another: a second would take the first one's answer.
  while (alive_ && waiting_.contains(id)) {
    const auto before = waiting_[id];
    co_await before->answered.async_wait(kNoError);
  }
  if (!alive_) co_return false;
  auto waiting = std::make_shared<Waiting>(executor_);
  waiting->answered.expires_after(limit);
  waiting_[id] = waiting;
  header["id"] = id;
  channel_->post(header, payload);
  co_await waiting->answered.async_wait(kNoError);
  if (const auto found = waiting_.find(id); found != waiting_.end() && found->second == waiting) waiting_.erase(found);
  co_return alive_ && waiting->answer == "done";
}

asio::awaitable<bool> Network::set_rules(std::uint32_t id, std::vector<std::string> rules) {
  co_return co_await ask(id, wire::request("rules"), joined(rules), kRulesLimit);
}

asio::awaitable<void> Network::sync() {
  const std::uint32_t id = next_id_++;
  co_await ask(id, wire::request("sync"), std::string(), kSyncLimit);
}

}  // namespace sandy::session
