// The part of http_messages.h that reads what a server says, with Boost.Beast's parser: alone here, as its headers are large.
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/parser.hpp>

#include "proxy/http_messages.h"

namespace sandy::proxy {
namespace {

namespace http = boost::beast::http;
using Error = std::unexpected<std::string>;
using Parser = http::response_parser<http::empty_body>;

std::string owned(boost::beast::string_view text) { return std::string(text.data(), text.size()); }

// RFC 9112, section 6.3. Beast has refused a body with both lengths and one with two different ones.
std::expected<Framing, std::string> framing_of(const Parser& parser, const HttpFields& fields, bool to_head_request) {
  const unsigned status = parser.get().result_int();
  const bool transfer_encoding = has_field(fields, "Transfer-Encoding");
  if (transfer_encoding && !parser.chunked()) return Error("a Transfer-Encoding other than chunked");
  if (to_head_request || status < 200 || status == 204 || status == 304) return Framing::none;
  if (transfer_encoding) return Framing::chunked;
  return parser.content_length() ? Framing::length : Framing::close;
}

}  // namespace

std::expected<ResponseHead, std::string> parse_response_head(std::string_view head, bool to_head_request) {
  Parser parser;
  parser.header_limit(kMaxHttpHead);
  parser.skip(true);  // the body is http_body's
  boost::system::error_code error;
  const auto used = parser.put(boost::asio::buffer(head), error);
  if (error) return Error(error.message());
  if (!parser.is_header_done() || used != head.size()) return Error("no head");
  ResponseHead out;
  const auto& message = parser.get();
  out.status = message.result_int();
  if (out.status < 100 || out.status > 599) return Error("a status that is none");
  out.reason = owned(message.reason());
  for (const auto& field : message) {
    if (out.fields.size() == kMaxHttpHeaders) return Error("too many headers");
    // Beast joins lines with spaces where a header goes on in a second one.
    out.fields.emplace_back(owned(field.name_string()), owned(field.value()));
    if (!is_field_value(out.fields.back().second)) return Error("a header has a control character");
    // More codings, or the same one twice: not what its last word says.
    if (field.name() == http::field::transfer_encoding && !same_word(out.fields.back().second, "chunked")) return Error("a Transfer-Encoding other than chunked");
  }
  const auto framing = framing_of(parser, out.fields, to_head_request);
  if (!framing) return Error(framing.error());
  out.framing = *framing;
  if (const auto length = parser.content_length()) out.content_length = *length;
  // A chunked body in HTTP/1.0 is read, and the connection not trusted any further (RFC 9112, section 6.1).
  const bool trusted = message.version() == 11 || out.framing != Framing::chunked;
  out.keep_alive = parser.keep_alive() && out.framing != Framing::close && trusted;
  return out;
}

}  // namespace sandy::proxy
