#include "proxy/http_session.h"

#include <algorithm>
#include <memory>

#include "proxy/http_messages.h"

namespace sandy::proxy {
namespace {

constexpr std::uint16_t kHttpPort = 80;
constexpr std::string_view kEstablished = "HTTP/1.1 200 Connection established\r\n\r\n";

Authority with_port(Authority authority) {
  if (!authority.port) authority.port = kHttpPort;
  return authority;
}

// A connection to a server, which may be used for the next request to the same authority.
struct Upstream {
  Upstream(tcp::socket socket_, Authority target_) : socket(std::move(socket_)), target(std::move(target_)), stream(socket, {}) {}

  tcp::socket socket;
  Authority target;
  HttpStream stream;
};

// RFC 9110, section 9.2.2: a proxy may send these again by itself, if it has all of them.
bool may_repeat(const HttpHead& request) {
  constexpr std::string_view kIdempotent[] = {"GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"};
  return framing_of(request) == Framing::none && std::ranges::find(kIdempotent, request.method) != std::end(kIdempotent);
}

Answer answer_to(const HttpHead& request, const HttpRefusal& refusal, const Authority& target) {
  Answer out;
  out.status = refusal.status;
  out.reason = refusal.reason;
  out.blocked = authority_text(target);
  out.client_1_1 = request.version_1_1;
  out.to_head_request = request.method == "HEAD";
  return out;
}

Answer answer_of(unsigned status, std::string reason) {
  Answer out;
  out.status = status;
  out.reason = std::move(reason);
  return out;
}

class HttpSession {
 public:
  HttpSession(tcp::socket& client, std::string first, std::optional<Authority> fixed, std::optional<tcp::socket> upstream, HttpOwner& owner, HttpTimeouts timeouts)
      : client_(client, std::move(first)), owner_(owner), timeouts_(timeouts) {
    if (!fixed) return;
    fixed_ = with_port(std::move(*fixed));
    if (upstream) upstream_ = std::make_unique<Upstream>(std::move(*upstream), *fixed_);
  }

  asio::awaitable<void> serve() {
    // Not in the while's condition: g++ 12 makes a coroutine of that which can't be resumed.
    bool more = true;
    while (more) more = co_await serve_request();
    end_upstream();
    if (!handed_over_) co_await client_.close_lingering(timeouts_.linger);
  }

 private:
  // False: it was the last one.
  asio::awaitable<bool> serve_request() {
    const auto request = co_await read_head();
    if (!request) co_return false;
    const auto target = judge(*request);
    if (!target) {
      const auto said = answer_to(*request, target.error(), with_port(request->target));
      owner_.note_refusal(said.blocked, target.error().reason);
      co_await answer(said);
      co_return false;
    }
    if (request->form == TargetForm::authority) {
      co_await connect_tunnel(*request, *target);
      co_return false;
    }
    co_return co_await forward(*request, *target);
  }

  // The next request's head. None: there is no more to come, or what came was answered.
  asio::awaitable<std::optional<HttpHead>> read_head() {
    const bool begun = !client_.bytes().empty() || co_await wait_for_request();
    if (!begun) co_return std::nullopt;
    const auto expire = [this] { client_.stop(); };
    const Watchdog watchdog(executor(), timeouts_.head, expire);
    std::size_t looked_at = 0;
    while (true) {
      const auto size = find_http_head(client_.bytes(), looked_at);
      if (!size) {
        co_await answer_malformed(size.error() == kHttpHeadTooLong ? 431 : 400, size.error());
        co_return std::nullopt;
      }
      if (*size > 0) {
        auto head = parse_http_head(client_.bytes().substr(0, *size));
        client_.consume(*size);
        if (head) co_return std::move(*head);
        co_await answer_malformed(400, head.error());
        co_return std::nullopt;
      }
      looked_at = client_.bytes().size();
      const auto filled = co_await client_.fill();
      if (watchdog.expired()) co_await answer_malformed(408, "the request's head did not come in time");
      if (filled != HttpStream::Fill::data || watchdog.expired()) co_return std::nullopt;
    }
  }

  asio::awaitable<bool> wait_for_request() {
    const auto expire = [this] { client_.stop(); };
    const Watchdog watchdog(executor(), timeouts_.idle, expire);
    const auto filled = co_await client_.fill();
    co_return filled == HttpStream::Fill::data && !watchdog.expired();
  }

  // Which server the request is for.
  std::expected<Authority, HttpRefusal> judge(const HttpHead& request) const {
    const auto target = with_port(request.target);
    if (fixed_) {
      if (request.form == TargetForm::authority) return refusal(400, "CONNECT is for a proxy, and this is a connection to " + authority_text(*fixed_));
      if (target != *fixed_) return refusal(400, "the request is for " + authority_text(target) + ", and the connection is to " + authority_text(*fixed_));
      return target;
    }
    if (request.form == TargetForm::authority || request.form == TargetForm::absolute) return target;
    return refusal(400, "this is a proxy: a request's target must be an http: URL, or that of CONNECT");
  }

  static std::unexpected<HttpRefusal> refusal(unsigned status, std::string reason) { return std::unexpected(HttpRefusal{status, std::move(reason)}); }

  asio::awaitable<void> connect_tunnel(const HttpHead& request, const Authority& target) {
    end_upstream();
    auto server = co_await owner_.connect(target, true);
    if (!server) {
      // What may stand behind the head is not HTTP.
      const auto said = answer_to(request, server.error(), target);
      co_await answer(said);
      co_return;
    }
    const bool told = co_await write(kEstablished);
    if (!told) {
      owner_.closed();
      co_return;
    }
    handed_over_ = true;
    co_await owner_.tunnel(client_.socket(), client_.take(), *server, std::string(), target, false);
  }

  // False: the client's connection ends.
  asio::awaitable<bool> forward(const HttpHead& request, const Authority& target) {
    while (true) {
      const bool kept = keeps_upstream_for(target);
      if (!kept) {
        auto server = co_await owner_.connect(target, false);
        if (!server) co_return co_await answer_refused(request, server.error(), target);
        upstream_ = std::make_unique<Upstream>(std::move(*server), target);
      }
      HttpExchange exchange(client_, upstream_->stream, request, target, timeouts_.progress);
      co_await exchange.run();
      // A server may close an idle connection at any time, also just now.
      if (kept && exchange.unanswered() && may_repeat(request)) {
        end_upstream();
        continue;
      }
      co_return co_await conclude(exchange, request, target);
    }
  }

  asio::awaitable<bool> conclude(const HttpExchange& exchange, const HttpHead& request, const Authority& target) {
    if (exchange.ending() == HttpExchange::Ending::upgraded) {
      handed_over_ = true;
      const auto upstream = std::move(upstream_);
      owner_.count(upstream->stream.sent(), upstream->stream.received() - upstream->stream.bytes().size());  // the rest is tunnel()'s to pass on
      co_await owner_.tunnel(client_.socket(), client_.take(), upstream->socket, upstream->stream.take(), target, true);
      co_return false;
    }
    // What a server sends unasked must not be the answer to the next request.
    if (!exchange.keeps_server() || !upstream_->stream.quiet()) end_upstream();
    if (exchange.client_at_fault()) owner_.note_refusal(authority_text(target), exchange.refusal().reason);
    if (exchange.ending() == HttpExchange::Ending::refused) {
      const auto said = answer_to(request, exchange.refusal(), target);
      co_await answer(said);
    }
    if (exchange.ending() == HttpExchange::Ending::broken && exchange.end_looks_whole()) client_.close_abruptly();
    co_return exchange.keeps_client();
  }

  // Whether there is a connection that can be used for `target`. One to another server ends, and so does one where something came since.
  bool keeps_upstream_for(const Authority& target) {
    if (upstream_ && (upstream_->target != target || !upstream_->stream.quiet())) end_upstream();
    return upstream_ != nullptr;
  }

  void end_upstream() {
    if (!upstream_) return;
    const auto upstream = std::move(upstream_);
    owner_.count(upstream->stream.sent(), upstream->stream.received());
    owner_.closed();
  }

  // A client that is told no for one request may ask for something else. With a body to come it would have to be read first.
  asio::awaitable<bool> answer_refused(const HttpHead& request, const HttpRefusal& refused, const Authority& target) {
    auto said = answer_to(request, refused, target);
    said.keep_alive = refused.status == 403 && framing_of(request) == Framing::none && request.keep_alive;
    const bool sent = co_await answer(said);
    co_return sent && said.keep_alive;
  }

  asio::awaitable<void> answer_malformed(unsigned status, std::string reason) {
    owner_.note_refusal(fixed_ ? authority_text(*fixed_) : std::string(), reason);
    const auto said = answer_of(status, std::move(reason));
    co_await answer(said);
  }

  asio::awaitable<bool> answer(const Answer& said) {
    const auto text = answer_text(said);
    co_return co_await write(text);
  }

  asio::awaitable<bool> write(std::string_view text) {
    client_.resume();
    const auto expire = [this] { client_.stop(); };
    const Watchdog watchdog(executor(), timeouts_.progress, expire);
    co_return co_await client_.write(text);
  }

  asio::any_io_executor executor() { return client_.socket().get_executor(); }

  HttpStream client_;
  std::optional<Authority> fixed_;
  HttpOwner& owner_;
  const HttpTimeouts timeouts_;
  std::unique_ptr<Upstream> upstream_;
  bool handed_over_ = false;
};

}  // namespace

asio::awaitable<void> serve_http(tcp::socket& client, std::string first, std::optional<Authority> fixed, std::optional<tcp::socket> upstream, HttpOwner& owner,
                                 HttpTimeouts timeouts) {
  HttpSession session(client, std::move(first), std::move(fixed), std::move(upstream), owner, timeouts);
  co_await session.serve();
}

}  // namespace sandy::proxy
