#include "proxy/http_exchange.h"

#include <boost/asio/experimental/awaitable_operators.hpp>

namespace sandy::proxy {

using namespace asio::experimental::awaitable_operators;

namespace {

constexpr int kMaxInterim = 100;  // responses before the final one: a server that never comes to it

}  // namespace

HttpExchange::HttpExchange(HttpStream& client, HttpStream& server, const HttpHead& request, const Authority& target, std::chrono::milliseconds patience)
    : client_(client), server_(server), request_(request), target_(target), patience_(patience) {}

asio::awaitable<void> HttpExchange::run() {
  const auto expire = [this] {
    refuse(504, "nothing came from the server, nor from the client, for too long");
    stop();
  };
  Watchdog watchdog(client_.socket().get_executor(), patience_, expire);
  watchdog_ = &watchdog;
  auto request = send_request();
  auto response = receive_response();
  co_await (std::move(request) && std::move(response));
  watchdog_ = nullptr;
  client_.resume();
  // A server that switched before it had the request takes what comes for something else than what was judged.
  if (ending_ == Ending::upgraded && !request_sent_) ending_ = Ending::broken;
}

void HttpExchange::stop() {
  stopping_ = true;
  client_.stop();
  server_.stop();
}

// The first reason is what happened; later ones follow from it.
void HttpExchange::refuse(unsigned status, std::string reason) {
  if (refusal_.status == 0) refusal_ = HttpRefusal{status, std::move(reason)};
}

void HttpExchange::blame_client(std::string reason) {
  if (stopping_) return;
  client_at_fault_ = true;
  refuse(400, std::move(reason));
  stop();
}

asio::awaitable<bool> HttpExchange::write(HttpStream& stream, std::string& bytes) {
  if (bytes.empty()) co_return true;
  const bool written = co_await stream.write(bytes);
  bytes.clear();
  watchdog_->touch();
  co_return written;
}

asio::awaitable<void> HttpExchange::send_request() {
  request_sent_ = co_await send_body();
  request_over_ = true;
}

// A server that takes no more may have answered all the same, so that is not the exchange's end.
asio::awaitable<bool> HttpExchange::send_body() {
  const auto framing = framing_of(request_);
  BodyReader reader(framing, request_.content_length);
  const BodyWriter writer(framing);
  auto out = request_text(request_, target_);
  std::string data;
  while (true) {
    data.clear();
    const auto used = reader.feed(client_.bytes(), data);
    if (!used) {
      blame_client(used.error());
      co_return false;
    }
    client_.consume(*used);
    writer.piece(out, data);
    if (reader.done()) {
      writer.end(out, reader.trailers());
      request_read_ = true;
    }
    if (!co_await write(server_, out)) co_return false;
    if (reader.done()) co_return true;
    const auto filled = co_await client_.fill();
    if (filled != HttpStream::Fill::data) {
      blame_client("the request's body ended too early");
      co_return false;
    }
    watchdog_->touch();
  }
}

asio::awaitable<void> HttpExchange::receive_response() {
  // Not within the if: g++ 12 makes a coroutine of that which can't be resumed.
  const bool has_response = co_await receive_heads();
  if (has_response) co_await receive_body();
  // What the client still sends of a request that was answered is for nobody.
  if (!request_over_) stop();
}

// Up to the final response's; false: there is none.
asio::awaitable<bool> HttpExchange::receive_heads() {
  for (int interim = 0; interim <= kMaxInterim; ++interim) {
    if (!co_await receive_head()) co_return false;
    if (response_.status >= 200) co_return true;
    std::string out;
    if (response_.status == 101) {
      if (!asks_for_websocket(request_) || !has_item(response_.fields, "Upgrade", "websocket")) {
        refuse(502, "the server switched to a protocol that was not asked for");
        co_return false;
      }
      out = switching_text(response_);
      const bool told = co_await write(client_, out);
      ending_ = told ? Ending::upgraded : Ending::broken;
      co_return false;
    }
    if (!request_.version_1_1) continue;  // such a client knows none
    out = interim_text(response_);
    const bool told = co_await write(client_, out);
    if (!told) {
      ending_ = Ending::broken;
      co_return false;
    }
  }
  refuse(502, "the server sent interim responses without end");
  co_return false;
}

asio::awaitable<bool> HttpExchange::receive_head() {
  std::size_t looked_at = 0;
  while (true) {
    const auto size = find_http_head(server_.bytes(), looked_at);
    if (!size) {
      refuse(502, "the server's answer is not HTTP: " + size.error());
      co_return false;
    }
    if (*size > 0) {
      auto head = parse_response_head(server_.bytes().substr(0, *size), request_.method == "HEAD");
      server_.consume(*size);
      if (!head) refuse(502, "the server's answer is not HTTP: " + head.error());
      if (head) response_ = std::move(*head);
      co_return head.has_value();
    }
    looked_at = server_.bytes().size();
    heard_server_ = heard_server_ || looked_at > 0;
    const auto filled = co_await server_.fill();
    watchdog_->touch();
    if (filled != HttpStream::Fill::data) {
      server_gone_ = !stopping_;
      refuse(502, "the server closed the connection before it answered");
      co_return false;
    }
    heard_server_ = true;
  }
}

void HttpExchange::begin_response(std::string& out) {
  ending_ = Ending::broken;  // until it is whole
  framing_ = framing_for_client(response_, request_.version_1_1);
  // A client that still sends can't be told later that nobody reads it.
  keep_client_ = request_.keep_alive && request_read_ && framing_ != Framing::close;
  out = response_text(response_, framing_, request_.version_1_1, keep_client_);
}

bool HttpExchange::take_body(std::string& out, BodyReader& reader, const BodyWriter& writer) {
  std::string data;
  const auto used = reader.feed(server_.bytes(), data);
  writer.piece(out, data);  // also what came before a fault
  if (used) server_.consume(*used);
  return used.has_value();
}

asio::awaitable<void> HttpExchange::receive_body() {
  std::string out;
  begin_response(out);
  BodyReader reader(response_.framing, response_.content_length.value_or(0));
  const BodyWriter writer(framing_);
  bool ended = false;
  while (true) {
    const bool well_formed = take_body(out, reader, writer);
    ended = ended || reader.done();
    if (ended) writer.end(out, reader.trailers());
    if (!co_await write(client_, out)) co_return;
    if (!well_formed) break;
    if (ended) {
      ending_ = Ending::complete;
      break;
    }
    const auto filled = co_await server_.fill();
    watchdog_->touch();
    if (filled == HttpStream::Fill::data) continue;
    if (filled != HttpStream::Fill::end || !reader.may_end()) break;
    ended = true;
  }
  keep_server_ = ended && response_.keep_alive;
}

}  // namespace sandy::proxy
