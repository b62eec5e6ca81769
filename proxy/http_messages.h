// The heads of HTTP/1 messages as a proxy sends them, written anew from what was judged. And the head of a response, bytes in, value out. Pure.
#pragma once

#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>

#include "proxy/authority.h"
#include "proxy/http_body.h"
#include "proxy/http_fields.h"
#include "proxy/http_head.h"

namespace sandy::proxy {

// HOST:PORT, and as a value of Host, where the default port is left out. An IPv6 address is in brackets.
std::string authority_text(const Authority& authority);
std::string host_field(const Authority& authority);

// --- to the server

// A request to be passed on that asks for WebSocket, RFC 6455 section 4.1. No other protocol is ever upgraded to.
bool asks_for_websocket(const HttpHead& request);
Framing framing_of(const HttpHead& request);
// In origin form, for `target`, HTTP/1.1. Only one that asks for WebSocket keeps its Upgrade (RFC 9110, section 7.8: it may be ignored).
std::string request_text(const HttpHead& request, const Authority& target);

// --- from the server

struct ResponseHead {
  unsigned status = 0;
  std::string reason;
  HttpFields fields;
  Framing framing = Framing::none;  // of the body, RFC 9112 section 6.3
  std::optional<std::uint64_t> content_length;  // as said, also where there is no body (HEAD, 304)
  bool keep_alive = false;
};

// A whole head (find_http_head). The error is a sentence.
std::expected<ResponseHead, std::string> parse_response_head(std::string_view head, bool to_head_request);

// --- to the client

// How the body is framed for a client of HTTP/1.1 or 1.0: one of 1.0 knows no chunks.
Framing framing_for_client(const ResponseHead& response, bool client_1_1);
// A final response.
std::string response_text(const ResponseHead& response, Framing framing, bool client_1_1, bool keep_alive);
std::string interim_text(const ResponseHead& response);  // 1xx
std::string switching_text(const ResponseHead& response);  // 101, to WebSocket

struct Answer {
  unsigned status = 0;
  std::string reason;   // in words
  std::string blocked;  // of a 403: what was asked for
  bool keep_alive = false, client_1_1 = true, to_head_request = false;
};

// The proxy's own response: a line of plain text, and the reason in X-Sandy-Blocked.
std::string answer_text(const Answer& answer);

}  // namespace sandy::proxy
