#include "proxy/http_messages.h"

#include <algorithm>

namespace sandy::proxy {
namespace {

constexpr std::string_view kReasonField = "X-Sandy-Blocked";
constexpr std::size_t kMaxReason = 1024;

void add(std::string& out, std::string_view name, std::string_view value) {
  out += name;
  out += ": ";
  out += value;
  out += "\r\n";
}

std::string bracketed(const Host& host) {
  const auto* address = std::get_if<policy::IpAddress>(&host);
  return address != nullptr && address->v6 ? '[' + text(host) + ']' : text(host);
}

std::string status_line(unsigned status, std::string_view reason) { return "HTTP/1.1 " + std::to_string(status) + ' ' + std::string(reason) + "\r\n"; }

const char* status_words(unsigned status) {
  switch (status) {
    case 400: return "Bad Request";
    case 403: return "Forbidden";
    case 408: return "Request Timeout";
    case 431: return "Request Header Fields Too Large";
    case 502: return "Bad Gateway";
    case 503: return "Service Unavailable";
    case 504: return "Gateway Timeout";
    default: return "Refused";
  }
}

// One line of text that can't be taken for another header, whatever a client or server had a part in.
std::string plain_line(std::string_view words) {
  std::string out(words.substr(0, kMaxReason));
  std::ranges::replace_if(out, [](char c) { return c < ' ' || c > '~'; }, '?');
  return out;
}

// The server's fields that a client gets.
void add_fields(std::string& out, const ResponseHead& response, bool trailers) {
  for (const auto& [name, value] : end_to_end(response.fields)) {
    // The proxy's own word is not a server's to say.
    if (same_word(name, kReasonField) || (!trailers && same_word(name, "Trailer"))) continue;
    add(out, name, value);
  }
}

}  // namespace

std::string authority_text(const Authority& authority) {
  return authority.port ? bracketed(authority.host) + ':' + std::to_string(*authority.port) : bracketed(authority.host);
}

std::string host_field(const Authority& authority) { return authority.port == 80 ? bracketed(authority.host) : authority_text(authority); }

bool asks_for_websocket(const HttpHead& request) {
  return request.upgrade && request.version_1_1 && request.method == "GET" && framing_of(request) == Framing::none &&
         has_item(request.headers, "Upgrade", "websocket");
}

Framing framing_of(const HttpHead& request) {
  if (request.chunked) return Framing::chunked;
  return request.content_length > 0 ? Framing::length : Framing::none;
}

std::string request_text(const HttpHead& request, const Authority& target) {
  std::string out = request.method + ' ' + request.path + " HTTP/1.1\r\n";
  add(out, "Host", host_field(target));
  for (const auto& [name, value] : end_to_end(request.headers)) {
    if (same_word(name, "Host")) continue;
    // A client of HTTP/1.0 can't be sent a 100 (RFC 9110, section 10.1.1), and trailers are for chunked bodies.
    if (same_word(name, "Expect") && !request.version_1_1) continue;
    if (same_word(name, "Trailer") && !request.chunked) continue;
    add(out, name, value);
  }
  if (request.chunked) {
    add(out, "Transfer-Encoding", "chunked");
  } else if (has_field(request.headers, "Content-Length")) {
    add(out, "Content-Length", std::to_string(request.content_length));
  }
  std::string connection;
  if (asks_for_websocket(request)) {
    add(out, "Upgrade", "websocket");
    connection = "Upgrade";
  } else if (!request.keep_alive) {
    connection = "close";
  }
  if (has_item(request.headers, "TE", "trailers")) {
    add(out, "TE", "trailers");
    connection += connection.empty() ? "TE" : ", TE";
  }
  if (!connection.empty()) add(out, "Connection", connection);
  return out + "\r\n";
}

Framing framing_for_client(const ResponseHead& response, bool client_1_1) {
  const bool open_ended = response.framing == Framing::chunked || response.framing == Framing::close;
  if (!open_ended) return response.framing;
  return client_1_1 ? Framing::chunked : Framing::close;
}

std::string response_text(const ResponseHead& response, Framing framing, bool client_1_1, bool keep_alive) {
  std::string out = status_line(response.status, response.reason);
  add_fields(out, response, framing == Framing::chunked);
  if (framing == Framing::chunked) {
    add(out, "Transfer-Encoding", "chunked");
  } else if (response.content_length && response.status != 204 && framing != Framing::close) {
    add(out, "Content-Length", std::to_string(*response.content_length));
  }
  if (!keep_alive) {
    add(out, "Connection", "close");
  } else if (!client_1_1) {
    add(out, "Connection", "keep-alive");
  }
  return out + "\r\n";
}

std::string interim_text(const ResponseHead& response) {
  std::string out = status_line(response.status, response.reason);
  add_fields(out, response, false);
  return out + "\r\n";
}

std::string switching_text(const ResponseHead& response) {
  std::string out = status_line(response.status, response.reason);
  add_fields(out, response, false);
  add(out, "Upgrade", "websocket");
  add(out, "Connection", "Upgrade");
  return out + "\r\n";
}

std::string answer_text(const Answer& answer) {
  const auto reason = plain_line(answer.reason);
  const auto body = answer.status == 403 ? "[sandy] blocked: " + plain_line(answer.blocked) + " (" + reason + ")\n" : "[sandy] " + reason + '\n';
  auto out = status_line(answer.status, status_words(answer.status));
  add(out, "Content-Type", "text/plain; charset=utf-8");
  add(out, "Content-Length", std::to_string(body.size()));
  add(out, kReasonField, reason);
  if (!answer.keep_alive) {
    add(out, "Connection", "close");
  } else if (!answer.client_1_1) {
    add(out, "Connection", "keep-alive");
  }
  out += "\r\n";
  return answer.to_head_request ? out : out + body;
}

}  // namespace sandy::proxy
