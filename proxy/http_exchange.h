// One request that was judged, and its response, between a client and the server it is for. Both directions run at the same time, as a server may answer before
// it has all of the request (RFC 9112, section 9.5), and a client may wait for an interim response before it sends the body.
#pragma once

#include <chrono>
#include <string>

#include "proxy/authority.h"
#include "proxy/http_body.h"
#include "proxy/http_messages.h"
#include "proxy/http_stream.h"

namespace sandy::proxy {

struct HttpRefusal {
  unsigned status = 0;
  std::string reason;  // in words
};

class HttpExchange {
 public:
  enum class Ending {
    complete,  // the client has the whole response
    upgraded,  // it was told of the switch to WebSocket: what both sides sent since is in their streams
    refused,   // it got nothing of a final response and is to get `refusal`
    broken,    // it has a part of the response
  };

  // No progress in either direction for `patience`: it ends.
  HttpExchange(HttpStream& client, HttpStream& server, const HttpHead& request, const Authority& target, std::chrono::milliseconds patience);

  // Afterwards both streams are usable, but a server that must not be used again.
  asio::awaitable<void> run();

  Ending ending() const { return ending_; }
  const HttpRefusal& refusal() const { return refusal_; }
  bool client_at_fault() const { return client_at_fault_; }
  // Whether the client was told, and may go on to send requests; whether the server may be sent another one.
  bool keeps_client() const { return ending_ == Ending::complete && keep_client_; }
  bool keeps_server() const { return ending_ == Ending::complete && keep_server_ && request_sent_; }
  // Not one byte came from the server, as when it had closed an idle connection.
  bool unanswered() const { return ending_ == Ending::refused && !heard_server_ && server_gone_; }
  // The client can't tell by itself that the response isn't whole.
  bool end_looks_whole() const { return framing_ == Framing::close; }

 private:
  asio::awaitable<void> send_request();
  asio::awaitable<bool> send_body();
  asio::awaitable<void> receive_response();
  asio::awaitable<bool> receive_heads();
  asio::awaitable<bool> receive_head();
  asio::awaitable<void> receive_body();
  asio::awaitable<bool> write(HttpStream& stream, std::string& bytes);
  bool take_body(std::string& out, BodyReader& reader, const BodyWriter& writer);
  void begin_response(std::string& out);
  void refuse(unsigned status, std::string reason);
  void blame_client(std::string reason);
  void stop();

  HttpStream& client_;
  HttpStream& server_;
  const HttpHead& request_;
  const Authority& target_;
  const std::chrono::milliseconds patience_;
  Watchdog* watchdog_ = nullptr;  // run()'s

  ResponseHead response_;
  Framing framing_ = Framing::none;  // of the response, for the client
  Ending ending_ = Ending::refused;
  HttpRefusal refusal_;
  // Of the request: all of it was read; all of it was written; there is nothing more to be done.
  bool request_read_ = false, request_sent_ = false, request_over_ = false;
  bool stopping_ = false, heard_server_ = false, server_gone_ = false, client_at_fault_ = false, keep_client_ = false, keep_server_ = false;
};

}  // namespace sandy::proxy
