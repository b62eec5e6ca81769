// The head of an HTTP/1 request, RFC 9112: bytes in, value out, or why it is refused. Stricter than the RFC where servers are known to differ in how they
// take a form, since then one request could be judged and another one served ("smuggling"). Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>

#include "proxy/authority.h"
#include "proxy/http_fields.h"

namespace sandy::proxy {

inline constexpr std::size_t kMaxHttpHead = 65'536;
inline constexpr std::size_t kMaxHttpHeaders = 256;
inline constexpr std::string_view kHttpHeadTooLong = "a head of more than 64 KiB";  // of find_http_head: what status 431 is for

enum class TargetForm { origin, absolute, authority, asterisk };  // RFC 9112, section 3.2

struct HttpHead {
  std::string method;
  TargetForm form = TargetForm::origin;
  std::string path;          // what follows the authority: "/…", "*", "" for CONNECT
  Authority target;          // of the target in absolute and authority form, else of Host
  bool version_1_1 = true;
  HttpFields headers;        // as they came, in their order
  bool chunked = false;
  std::uint64_t content_length = 0;  // 0 where there is no body or it is chunked
  bool keep_alive = true;
  bool upgrade = false;              // Connection: upgrade, with an Upgrade header
  bool expects_continue = false;
};

// How many bytes of `bytes` the head has (a request's or a response's), with the empty line at its end: 0, need more. The error: there is none to be waited for.
// `looked_at`: how many of them an earlier call needed more than, so that a head that comes byte by byte is read once.
std::expected<std::size_t, std::string> find_http_head(std::string_view bytes, std::size_t looked_at = 0);

// A whole head. The error is a sentence for the client.
std::expected<HttpHead, std::string> parse_http_head(std::string_view head);

}  // namespace sandy::proxy
