// serve_http in a thread of its own, and the test at both of its ends: as the client and as the servers, by blocking sockets on loopback.
#pragma once

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <future>
#include <map>
#include <mutex>
#include <thread>

#include "base/unique_fd.h"
#include "proxy/http_session.h"

namespace sandy::proxy {

using namespace std::chrono_literals;

constexpr int kWaitSeconds = 10;  // for what is to come

// One end of a connection.
class Peer {
 public:
  Peer() = default;
  explicit Peer(UniqueFd fd) : fd_(std::move(fd)) {
    const timeval limit{kWaitSeconds, 0};
    ::setsockopt(fd_.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    ::setsockopt(fd_.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    const int on = 1;
    ::setsockopt(fd_.get(), IPPROTO_TCP, 1 /* TCP_NODELAY */, &on, sizeof on);
  }

  // How many bytes were taken.
  std::size_t send(std::string_view bytes) {
    std::size_t sent = 0;
    while (sent < bytes.size()) {
      const ssize_t n = ::send(fd_.get(), bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
      if (n <= 0) break;
      sent += static_cast<std::size_t>(n);
    }
    return sent;
  }
  void send_slowly(std::string_view bytes) {
    for (const char byte : bytes) {
      send(std::string_view(&byte, 1));
      std::this_thread::sleep_for(200us);
    }
  }
  std::string read(std::size_t bytes) {
    while (pending_.size() < bytes && fill()) {}
    return take(std::min(bytes, pending_.size()));
  }
  // With the marker; less if the end comes before.
  std::string read_until(std::string_view marker) {
    while (pending_.find(marker) == std::string::npos && fill()) {}
    const auto at = pending_.find(marker);
    return take(at == std::string::npos ? pending_.size() : at + marker.size());
  }
  std::string read_head() { return read_until("\r\n\r\n"); }
  std::string read_all() {
    while (fill()) {}
    return take(pending_.size());
  }
  bool ends() { return read_all().empty() && ended_; }
  bool was_reset() const { return reset_; }
  // Whether nothing comes for a while.
  bool silent(std::chrono::milliseconds time = 100ms) {
    pollfd poll{fd_.get(), POLLIN, 0};
    return pending_.empty() && ::poll(&poll, 1, static_cast<int>(time.count())) == 0;
  }
  void end_sending() { ::shutdown(fd_.get(), SHUT_WR); }
  void close() { fd_ = UniqueFd(); }
  int fd() const { return fd_.get(); }

 private:
  bool fill() {
    char bytes[65'536];
    const ssize_t n = ::recv(fd_.get(), bytes, sizeof bytes, 0);
    if (n > 0) pending_.append(bytes, static_cast<std::size_t>(n));
    reset_ = n < 0 && errno == ECONNRESET;
    ended_ = n == 0 || reset_;
    return n > 0;
  }
  std::string take(std::size_t size) {
    auto out = pending_.substr(0, size);
    pending_.erase(0, size);
    return out;
  }

  UniqueFd fd_;
  std::string pending_;
  bool ended_ = false, reset_ = false;
};

class Listener {
 public:
  Listener() : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    const timeval limit{kWaitSeconds, 0};
    ::setsockopt(fd_.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    auto* generic = reinterpret_cast<sockaddr*>(&address);
    if (::bind(fd_.get(), generic, size) != 0 || ::listen(fd_.get(), 16) != 0 || ::getsockname(fd_.get(), generic, &size) != 0) std::abort();
    port_ = ntohs(address.sin_port);
  }

  std::uint16_t port() const { return port_; }
  Peer accept() {
    UniqueFd fd(::accept4(fd_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    EXPECT_GE(fd.get(), 0) << "nobody came";
    return Peer(std::move(fd));
  }
  bool nobody_waits(std::chrono::milliseconds time = 50ms) {
    pollfd poll{fd_.get(), POLLIN, 0};
    return ::poll(&poll, 1, static_cast<int>(time.count())) == 0;
  }

 private:
  UniqueFd fd_;
  std::uint16_t port_ = 0;
};

// Connects names to listeners, refuses all others with 403, and passes a tunnel's bytes on.
class RigOwner : public HttpOwner {
 public:
  struct Tunnel {
    std::string from_client, from_server, target;
    bool upgraded = false;
  };

  void serve(const std::string& name, std::uint16_t port) { ports_[name] = port; }
  void refuse(const std::string& name, HttpRefusal refusal) { refusals_[name] = std::move(refusal); }

  std::vector<std::string> connects() { return locked(connects_); }
  std::vector<Tunnel> tunnels() { return locked(tunnels_); }
  std::vector<std::string> refusals() { return locked(noted_); }
  // "UP DOWN" in bytes, for each connection that has ended, without the tunnels' own.
  std::vector<std::string> ends() { return locked(ends_); }

  asio::awaitable<std::expected<tcp::socket, HttpRefusal>> connect(Authority target, bool tunnel) override {
    const auto name = text(target.host) + ':' + std::to_string(target.port.value_or(0));
    note(connects_, (tunnel ? "CONNECT " : "") + name);
    if (const auto refused = refusals_.find(text(target.host)); refused != refusals_.end()) co_return refusal(refused->second.status, refused->second.reason);
    const auto port = ports_.find(text(target.host));
    if (port == ports_.end()) co_return refusal(403, "no rule allows it");
    tcp::socket socket(co_await asio::this_coro::executor);
    const tcp::endpoint endpoint(asio::ip::address_v4::loopback(), port->second);
    const auto [error] = co_await socket.async_connect(endpoint, asio::as_tuple(asio::use_awaitable));
    if (error) co_return refusal(502, error.message());
    co_return std::move(socket);
  }

  asio::awaitable<void> tunnel(tcp::socket& client, std::string from_client, tcp::socket& server, std::string from_server, Authority target, bool upgraded) override;

  void count(std::uint64_t up, std::uint64_t down) override {
    up_ += up;
    down_ += down;
  }
  void closed() override {
    note(ends_, std::to_string(std::exchange(up_, 0)) + ' ' + std::to_string(std::exchange(down_, 0)));
  }

  void note_refusal(const std::string& target, const std::string& reason) override { note(noted_, target + ": " + reason); }

 private:
  static std::unexpected<HttpRefusal> refusal(unsigned status, std::string reason) { return std::unexpected(HttpRefusal{status, std::move(reason)}); }
  static Tunnel tunnel_of(const std::string& from_client, const std::string& from_server, const Authority& target, bool upgraded) {
    return {from_client, from_server, text(target.host) + ':' + std::to_string(target.port.value_or(0)), upgraded};
  }

  template <typename T>
  T locked(const T& value) {
    const std::lock_guard lock(mutex_);
    return value;
  }
  template <typename T>
  void note(std::vector<T>& list, T value) {
    const std::lock_guard lock(mutex_);
    list.push_back(std::move(value));
  }

  std::mutex mutex_;
  std::map<std::string, std::uint16_t> ports_;
  std::map<std::string, HttpRefusal> refusals_;
  std::vector<std::string> connects_, noted_, ends_;
  std::uint64_t up_ = 0, down_ = 0;
  std::vector<Tunnel> tunnels_;
};

class HttpSessionTest : public testing::Test {
 protected:
  HttpSessionTest() {
    owner.serve("a.example", a.port());
    owner.serve("c.example", c.port());
  }
  ~HttpSessionTest() override {
    client.close();
    work.reset();
    // Nothing that is tested here goes on when both ends are gone; what does is a test's fault, and is ended.
    if (thread.joinable() && ended.valid() && ended.wait_for(std::chrono::seconds(kWaitSeconds)) != std::future_status::ready) {
      ADD_FAILURE() << "the session goes on";
      io.stop();
    }
    if (thread.joinable()) thread.join();
  }

  // A client that is served as by a forward proxy, or in the place of `fixed`.
  void start(std::optional<Authority> fixed = {}, std::string first = {}, std::optional<tcp::socket> upstream = {}) {
    int fds[2] = {-1, -1};
    connect_pair(fds);
    client = Peer(UniqueFd(fds[0]));
    served = std::make_unique<tcp::socket>(io, tcp::v4(), fds[1]);
    ended = asio::co_spawn(io, serve_http(*served, std::move(first), std::move(fixed), std::move(upstream), owner, timeouts), asio::use_future);
    thread = std::thread([this] { io.run(); });
  }
  // Ends the session, so that another can be started.
  void end() {
    client.close();
    ended.wait();
    io.stop();
    thread.join();
    io.restart();
  }
  static Authority authority(const std::string& words) { return parse_authority(words).value(); }
  // So small buffers that back-pressure shows.
  void connect_pair(int* fds) {
    const UniqueFd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* generic = reinterpret_cast<sockaddr*>(&address);
    if (::bind(listener.get(), generic, size) != 0 || ::listen(listener.get(), 1) != 0 || ::getsockname(listener.get(), generic, &size) != 0) std::abort();
    fds[0] = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (::connect(fds[0], generic, size) != 0) std::abort();
    fds[1] = ::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC);
  }
  // A request to a.example, and its response of no body, on a kept connection.
  void exchange(Peer& server, const std::string& path) {
    client.send("GET http://a.example" + path + " HTTP/1.1\r\nHost: a.example\r\n\r\n");
    if (server.fd() < 0) server = a.accept();
    EXPECT_EQ(server.read_head(), "GET " + path + " HTTP/1.1\r\nHost: a.example\r\n\r\n");
    server.send("HTTP/1.1 204 No Content\r\n\r\n");
    EXPECT_EQ(client.read_head(), "HTTP/1.1 204 No Content\r\n\r\n");
  }
  // The session is over, and the client was told.
  void expect_end() {
    EXPECT_TRUE(client.ends());
    client.close();
    EXPECT_EQ(ended.wait_for(std::chrono::seconds(kWaitSeconds)), std::future_status::ready);
  }

  asio::io_context io;
  std::optional<asio::executor_work_guard<asio::io_context::executor_type>> work{asio::make_work_guard(io)};
  Listener a, c;
  RigOwner owner;
  HttpTimeouts timeouts;
  Peer client;
  std::unique_ptr<tcp::socket> served;
  std::future<void> ended;
  std::thread thread;
};

}  // namespace sandy::proxy
