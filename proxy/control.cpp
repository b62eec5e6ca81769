#include "proxy/control.h"

#include <algorithm>

#include "policy/network_rule.h"
#include "policy/port.h"

namespace sandy::proxy {
namespace {

wire::Json event_header(std::uint32_t id, const Event& event) {
  static constexpr const char* kVerdicts[] = {"allowed", "denied", "failed", "closed"};
  wire::Json out = wire::event(id, "network");
  out["verdict"] = kVerdicts[static_cast<int>(event.verdict)];
  out["target"] = event.target;
  out["protocol"] = event.protocol;
  out["reason"] = event.reason;
  if (!event.address.empty()) out["address"] = event.address;
  if (event.verdict == Event::Verdict::closed) {
    out["bytes_up"] = event.bytes_up;
    out["bytes_down"] = event.bytes_down;
    out["ms"] = event.duration_ms;
  }
  return out;
}

// A sandbox's events go out under its number.
class Events : public EventSink {
 public:
  Events(std::shared_ptr<wire::Channel> channel, std::uint32_t id) : channel_(std::move(channel)), id_(id) {}
  void on_event(Event event) override { channel_->post(event_header(id_, event)); }
  void on_question(std::uint32_t number, const std::string& target) override {
    wire::Json out = wire::event(id_, "question");
    out["number"] = number;
    out["target"] = target;
    channel_->post(out);
  }
  void on_expired(std::uint32_t number) override {
    wire::Json out = wire::event(id_, "expired");
    out["number"] = number;
    channel_->post(out);
  }

 private:
  std::shared_ptr<wire::Channel> channel_;
  std::uint32_t id_;
};

// Each has two descriptors, and while it is dialled some more; a quarter is left for sandboxes' listening sockets and lookups.
std::size_t most_connections(std::size_t descriptors) {
  constexpr std::size_t kMost = 8'192, kLeast = 16;
  return std::clamp<std::size_t>(descriptors * 3 / 8, kLeast, kMost);
}

}  // namespace

std::optional<Allowlist> parse_rules(std::string_view lines) {
  std::vector<policy::NetworkRule> allow, deny, allow_private;
  bool asks = false, real = false;
  while (!lines.empty()) {
    const auto end = std::min(lines.find('\n'), lines.size());
    const auto line = lines.substr(0, end);
    lines.remove_prefix(std::min(end + 1, lines.size()));
    if (line == "ask") {
      asks = true;
      continue;
    }
    if (line == "real") {
      real = true;
      continue;
    }
    const auto space = line.find(' ');
    if (space == std::string_view::npos) return {};
    const auto list = line.substr(0, space);
    auto rule = policy::parse_network_rule(line.substr(space + 1));
    auto* const target = list == "allow" ? &allow : list == "deny" ? &deny : list == "private" ? &allow_private : nullptr;
    if (!rule || target == nullptr) return {};
    target->push_back(std::move(*rule));
  }
  Allowlist out(std::move(allow), std::move(deny), std::move(allow_private));
  if (asks) out.let_ask();
  if (real) out.answer_really();
  return out;
}

Control::Control(asio::any_io_executor executor, UniqueFd socket, Resolver& resolver, std::size_t descriptors)
    : channel_(wire::Channel::make(executor, std::move(socket), wire::kMaxReplyPayload)),
      resolver_(resolver),
      dialer_(executor, resolver),
      shared_{executor, dialer_, 0, most_connections(descriptors)} {}

asio::awaitable<void> Control::run() {
  channel_->keep_fds(256);
  channel_->post(wire::event(0, "ready"));
  while (true) {
    auto frame = co_await channel_->read();
    if (!frame) break;
    handle(*frame);
  }
  for (auto& [id, network] : networks_) network->close();
}

void Control::handle(const wire::Frame& frame) {
  const auto op = frame.op();
  if (op == "add") {
    add(frame);
  } else if (op == "rules") {
    const auto found = networks_.find(frame.id);
    auto rules = parse_rules(frame.payload);
    // Rules that can't be read change nothing; `sandy` has checked them.
    if (rules) rules->count_as_public(counted_as_public_);
    if (found != networks_.end() && rules) found->second->set_rules(*rules);
    channel_->post(wire::event(frame.id, rules && found != networks_.end() ? "done" : "refused"));
  } else if (op == "inward" || op == "publish") {
    let_in(frame);
  } else if (op == "remove") {
    const auto found = networks_.find(frame.id);
    if (found == networks_.end()) return;
    asio::co_spawn(shared_.executor, remove(frame.id, found->second), asio::detached);
    networks_.erase(found);
  } else if (op == "answer") {
    const auto found = networks_.find(frame.id);
    if (found != networks_.end()) found->second->answer(static_cast<std::uint32_t>(frame.number("number", 0)), frame.flag("allow", false));
  } else if (op == "sync") {
    channel_->post(wire::event(frame.id, "done"));
  } else if (op == "names") {
    const auto files = channel_->take_fds(frame.number("fds", 0));
    if (files.size() == 2) resolver_.use_settings(settings_text(files[0]), settings_text(files[1]));
  } else if (op == "test") {
    use_test_network(frame);
  }
}

void Control::add(const wire::Frame& frame) {
  auto listeners = channel_->take_fds(frame.number("fds", 0));
  auto rules = parse_rules(frame.payload);
  if (!rules || networks_.contains(frame.id) || (listeners.size() != 2 && listeners.size() != 4)) {
    channel_->post(wire::event(frame.id, "refused"));
    return;
  }
  rules->count_as_public(counted_as_public_);
  auto network = std::make_shared<SandboxNetwork>(shared_, std::move(*rules), std::make_unique<Events>(channel_, frame.id));
  if (!network->start(std::move(listeners))) {
    channel_->post(wire::event(frame.id, "refused"));
    return;
  }
  networks_[frame.id] = std::move(network);
  channel_->post(wire::event(frame.id, "done"));
}

asio::awaitable<void> Control::remove(std::uint32_t id, std::shared_ptr<SandboxNetwork> network) {
  network->close();
  // Their ends are told before this one is.
  asio::steady_timer timer(shared_.executor);
  for (int turn = 0; turn < 100 && !network->idle(); ++turn) {
    timer.expires_after(std::chrono::milliseconds(turn < 10 ? 1 : 10));
    co_await timer.async_wait(asio::as_tuple(asio::use_awaitable));
  }
  channel_->post(wire::event(id, "done"));
}

void Control::let_in(const wire::Frame& frame) {
  auto fds = channel_->take_fds(frame.number("fds", 0));
  const auto found = networks_.find(frame.id);
  if (found == networks_.end() || fds.empty()) return;
  if (frame.op() == "inward") {
    InwardPair pair;
    pair.v4 = std::move(fds.front());
    if (fds.size() > 1) pair.v6 = std::move(fds[1]);
    found->second->add_inward(std::move(pair));
  } else if (const auto port = frame.number("port", 0); port >= 1 && port <= 65'535) {
    found->second->publish(std::move(fds.front()), static_cast<std::uint16_t>(port));
  }
}

void Control::use_test_network(const wire::Frame& frame) {
  const auto servers = frame.word("nameservers");
  if (!servers.empty()) resolver_.use_servers(std::string(servers));
  if (const auto networks = frame.header.find("public"); networks != frame.header.end() && networks->is_array()) {
    for (const auto& network : *networks) {
      if (!network.is_string()) continue;
      if (const auto parsed = policy::parse_ip_network(network.get_ref<const std::string&>())) counted_as_public_.push_back(*parsed);
    }
  }
  std::map<std::uint16_t, std::uint16_t> mapped;
  if (const auto ports = frame.header.find("ports"); ports != frame.header.end() && ports->is_object()) {
    for (const auto& [from, to] : ports->items()) {
      const auto port = policy::parse_port(from);
      if (port && to.is_number_unsigned()) mapped[*port] = to.get<std::uint16_t>();
    }
  }
  dialer_.map_ports(std::move(mapped));
  std::map<policy::IpAddress, policy::IpAddress> addresses;
  if (const auto given = frame.header.find("addresses"); given != frame.header.end() && given->is_object()) {
    for (const auto& [from, to] : given->items()) {
      const auto address = policy::parse_ip_address(from), target = policy::parse_ip_address(to.is_string() ? to.get<std::string>() : std::string());
      if (address && target) addresses[*address] = *target;
    }
  }
  dialer_.map_addresses(std::move(addresses));
}

}  // namespace sandy::proxy
