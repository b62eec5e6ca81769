#include "proxy/resolver.h"

#include <ares.h>
#include <netinet/in.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <new>
#include <stdexcept>

#include "policy/host_name.h"
#include "policy/network_rule.h"
#include "proxy/resolv_conf.h"
#include "proxy/text_lines.h"

namespace sandy::proxy {
namespace {

using policy::IpAddress;
using Answer = std::expected<std::vector<IpAddress>, std::string>;

constexpr int kTimeoutMs = 2'500, kTries = 3;
constexpr auto kNoError = asio::as_tuple(asio::use_awaitable);

std::map<std::string, std::vector<IpAddress>, std::less<>> parse_hosts(std::string_view text) {
  std::map<std::string, std::vector<IpAddress>, std::less<>> out;
  while (!text.empty()) {
    const auto words = words_of(next_line(text));
    const auto address = words.empty() ? std::nullopt : policy::parse_ip_address(words.front());
    if (!address) continue;
    for (std::size_t i = 1; i < words.size(); ++i) {
      if (const auto name = policy::canonical_host_name(words[i])) out[*name].push_back(*address);
    }
  }
  return out;
}

std::string words(int status) {
  switch (status) {
    case ARES_ENOTFOUND:
    case ARES_ENODATA: return "the host's resolver knows no such name";
    case ARES_ETIMEOUT:
    case ARES_ECONNREFUSED: return "the host's name servers don't answer";
    default: return std::string("the host's resolver failed: ") + ares_strerror(status);
  }
}

struct Pending {
  explicit Pending(const asio::any_io_executor& executor) : done(executor, asio::steady_timer::time_point::max()) {}
  asio::steady_timer done;
  std::optional<Answer> answer;
};

Answer addresses(int status, const ares_addrinfo* info) {
  if (status != ARES_SUCCESS || info == nullptr) return std::unexpected(words(status));
  std::vector<IpAddress> out;
  for (const auto* node = info->nodes; node != nullptr; node = node->ai_next) {
    IpAddress address;
    if (node->ai_family == AF_INET) {
      sockaddr_in in;
      std::memcpy(&in, node->ai_addr, sizeof in);
      std::memcpy(address.bytes.data(), &in.sin_addr, 4);
    } else if (node->ai_family == AF_INET6) {
      sockaddr_in6 in;
      std::memcpy(&in, node->ai_addr, sizeof in);
      std::memcpy(address.bytes.data(), &in.sin6_addr, 16);
      address.v6 = true;
    } else {
      continue;
    }
    if (std::ranges::find(out, address) == out.end()) out.push_back(address);
  }
  if (out.empty()) return std::unexpected(words(ARES_ENODATA));
  return out;
}

void on_answer(void* argument, int status, int, ares_addrinfo* info) {
  const std::unique_ptr<std::shared_ptr<Pending>> pending(static_cast<std::shared_ptr<Pending>*>(argument));
  try {
    (*pending)->answer = addresses(status, info);
  } catch (const std::bad_alloc&) {  // which may not go through c-ares
    (*pending)->answer = std::unexpected(std::string());
  }
  if (info != nullptr) ares_freeaddrinfo(info);
  (*pending)->done.cancel();
}

}  // namespace

std::string settings_text(const UniqueFd& file) {
  constexpr std::size_t kMax = 4 << 20;
  std::string out;
  std::array<char, 65'536> buffer;
  while (file && out.size() < kMax) {
    const ssize_t n = ::read(file.get(), buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    out.append(buffer.data(), static_cast<std::size_t>(n));
  }
  return out;
}

// c-ares says which of its sockets are to be watched; what is ready, and time that passed, it is told.
class Resolver::Channel : public std::enable_shared_from_this<Channel> {
 public:
  explicit Channel(asio::any_io_executor executor) : executor_(std::move(executor)), timer_(executor_) {
    ares_options options{};
    options.timeout = kTimeoutMs;
    options.tries = kTries;
    options.ndots = 1;
    options.sock_state_cb = [](void* self, ares_socket_t fd, int readable, int writable) { static_cast<Channel*>(self)->watch(fd, readable != 0, writable != 0); };
    options.sock_state_cb_data = this;
    char lookups[] = "b";  // name servers alone: no file can be opened any more
    options.lookups = lookups;
    if (ares_library_init(ARES_LIB_INIT_ALL) != ARES_SUCCESS ||
        ares_init_options(&channel_, &options, ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES | ARES_OPT_NDOTS | ARES_OPT_SOCK_STATE_CB | ARES_OPT_LOOKUPS) != ARES_SUCCESS) {
      throw std::runtime_error("the resolver can't be set up");
    }
  }
  ~Channel() {
    if (channel_ != nullptr) ares_destroy(channel_);
  }
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  bool use_servers(const std::string& servers) { return ares_set_servers_ports_csv(channel_, servers.c_str()) == ARES_SUCCESS; }

  asio::awaitable<Answer> ask(std::string name) {
    auto self = shared_from_this();
    auto pending = std::make_shared<Pending>(executor_);
    ares_addrinfo_hints hints{};
    hints.ai_family = AF_UNSPEC;
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = ARES_AI_NOSORT;
    ares_getaddrinfo(channel_, name.c_str(), nullptr, &hints, on_answer, new std::shared_ptr<Pending>(pending));
    set_timer();
    while (!pending->answer) co_await pending->done.async_wait(kNoError);
    co_return std::move(*pending->answer);
  }

 private:
  struct Watch {
    explicit Watch(const asio::any_io_executor& executor, int fd) : socket(executor, fd) {}
    // The socket is c-ares's to close.
    ~Watch() { (void)socket.release(); }
    Watch(const Watch&) = delete;
    Watch& operator=(const Watch&) = delete;
    asio::posix::stream_descriptor socket;
    bool reading = false, writing = false, wants_read = false, wants_write = false;
  };

  void watch(int fd, bool readable, bool writable) {
    if (!readable && !writable) {
      watches_.erase(fd);
      return;
    }
    auto& watch = watches_[fd];
    if (!watch) watch = std::make_shared<Watch>(executor_, fd);
    watch->wants_read = readable;
    watch->wants_write = writable;
    arm(fd, watch);
  }

  void arm(int fd, const std::shared_ptr<Watch>& watch) {
    if (watch->wants_read && !watch->reading) {
      watch->reading = true;
      wait(fd, watch, asio::posix::descriptor_base::wait_read);
    }
    if (watch->wants_write && !watch->writing) {
      watch->writing = true;
      wait(fd, watch, asio::posix::descriptor_base::wait_write);
    }
  }

  void wait(int fd, const std::shared_ptr<Watch>& watch, asio::posix::descriptor_base::wait_type what) {
    watch->socket.async_wait(what, [weak = weak_from_this(), fd, old = std::weak_ptr(watch), what](boost::system::error_code error) {
      const auto self = weak.lock();
      const auto current = old.lock();
      if (error || !self || !current) return;
      const bool read = what == asio::posix::descriptor_base::wait_read;
      (read ? current->reading : current->writing) = false;
      ares_process_fd(self->channel_, read ? fd : ARES_SOCKET_BAD, read ? ARES_SOCKET_BAD : fd);
      // c-ares may have closed this one, and opened another of the same number.
      const auto found = self->watches_.find(fd);
      if (found != self->watches_.end() && found->second == current) self->arm(fd, current);
      self->set_timer();
    });
  }

  void set_timer() {
    timeval value{};
    const timeval* next = ares_timeout(channel_, nullptr, &value);
    if (next == nullptr) {
      timer_.cancel();
      return;
    }
    timer_.expires_after(std::chrono::seconds(next->tv_sec) + std::chrono::microseconds(next->tv_usec) + std::chrono::milliseconds(1));
    timer_.async_wait([weak = weak_from_this()](boost::system::error_code error) {
      const auto self = weak.lock();
      if (error || !self) return;
      ares_process_fd(self->channel_, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
      self->set_timer();
    });
  }

  asio::any_io_executor executor_;
  asio::steady_timer timer_;
  std::map<int, std::shared_ptr<Watch>> watches_;
  ares_channel channel_ = nullptr;
};

Resolver::Resolver(asio::any_io_executor executor, std::string_view hosts) : channel_(std::make_shared<Channel>(std::move(executor))), hosts_(parse_hosts(hosts)) {}

Resolver::~Resolver() = default;

bool Resolver::use_servers(const std::string& servers) {
  has_own_servers_ = channel_->use_servers(servers);
  return has_own_servers_;
}

void Resolver::use_settings(std::string_view resolv_conf, std::string_view hosts) {
  hosts_ = parse_hosts(hosts);
  if (has_own_servers_) return;
  auto settings = parse_resolv_conf(resolv_conf);
  std::string servers;
  for (const auto& server : settings.servers) servers += (servers.empty() ? "" : ",") + server.text();
  if (!servers.empty()) channel_->use_servers(servers);
  search_ = std::move(settings.search);
}

asio::awaitable<Answer> Resolver::resolve(std::string name) {
  if (name == policy::kThisMachine) {
    static const std::vector<IpAddress> loopback{*policy::parse_ip_address("127.0.0.1"), *policy::parse_ip_address("::1")};
    co_return loopback;
  }
  if (const auto found = hosts_.find(name); found != hosts_.end()) co_return found->second;
  // A dot at the end: c-ares tries none of its search domains.
  if (name.find('.') == std::string::npos) {
    if (!search_) co_return co_await channel_->ask(std::move(name));
    const auto search = *search_;
    for (const auto& domain : search) {
      auto answer = co_await channel_->ask(name + "." + domain + ".");
      if (answer) co_return answer;
    }
  }
  co_return co_await channel_->ask(name + ".");
}

}  // namespace sandy::proxy
