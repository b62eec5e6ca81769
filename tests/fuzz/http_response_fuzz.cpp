// links: sandy_proxy_http
//
// The head of a server's response. What is written of it for a client is a head that is read the same way, and has nothing of a second message in it.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "proxy/http_head.h"
#include "proxy/http_messages.h"

using namespace sandy::proxy;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto end = find_http_head(bytes);
  if (!end || *end == 0) return 0;
  for (const bool to_head : {false, true}) {
    const auto response = parse_response_head(bytes.substr(0, *end), to_head);
    if (!response) continue;
    if (response->status < 100 || response->status > 999) std::abort();
    for (const bool client_1_1 : {false, true}) {
      const Framing framing = framing_for_client(*response, client_1_1);
      if (!client_1_1 && framing == Framing::chunked) std::abort();
      if (response->status < 200) continue;
      // It grows by a few headers, and so one at the limit of their number goes over that.
      constexpr std::size_t kAdded = 3;
      if (response->fields.size() + kAdded > kMaxHttpHeaders) continue;
      const std::string text = response_text(*response, framing, client_1_1, response->keep_alive);
      const auto again_end = find_http_head(text);
      if (!again_end || *again_end != text.size()) std::abort();
      const auto again = parse_response_head(text, to_head);
      if (!again || again->status != response->status || (client_1_1 && again->framing != framing)) std::abort();
    }
  }
  return 0;
}
