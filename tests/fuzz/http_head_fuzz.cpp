// links: sandy_proxy_core
//
// The start of a connection that may be HTTP. A head ends at the same place however much is behind it; what is accepted names one host, and written again in its plainest
// form means the same.
#include <cstdint>

#include "broken.h"
#include "proxy/http_head.h"

using namespace sandy::proxy;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto end = find_http_head(bytes);
  if (!end || *end == 0) return 0;
  if (*end > size || !bytes.substr(0, *end).ends_with("\r\n\r\n")) broken("another end than an empty line");
  if (find_http_head(bytes.substr(0, *end)).value_or(0) != *end || find_http_head(bytes.substr(0, *end - 1)).value_or(1) != 0) broken("an end that depends on what follows");
  const auto head = parse_http_head(bytes.substr(0, *end));
  if (!head) return 0;
  if (head->chunked && head->content_length != 0) broken("two lengths");
  std::string again = head->method + ' ' + (head->form == TargetForm::authority ? text(head->target.host) : head->path) + " HTTP/1.1\r\n";
  if (head->form == TargetForm::authority) return 0;
  for (const auto& [name, value] : head->headers) again += name + ": " + value + "\r\n";
  again += "\r\n";
  const auto same = parse_http_head(again);
  const bool had_host = head->version_1_1 || head->form == TargetForm::origin;
  if (had_host && (!same || same->target.host != head->target.host || same->content_length != head->content_length || same->chunked != head->chunked)) broken("written again it means something else");
  return 0;
}
