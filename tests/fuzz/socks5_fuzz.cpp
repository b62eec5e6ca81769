// links: sandy_proxy_core
//
// What a SOCKS client sends. A prefix of a message needs more or is malformed, more bytes behind it change nothing, and no more is waited for than a message has.
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "proxy/socks5.h"

using namespace sandy::proxy::socks5;

namespace {

template <typename Message, typename Parse>
void check(Bytes bytes, Parse parse, std::size_t longest) {
  const auto whole = parse(bytes);
  if (std::holds_alternative<NeedMore>(whole) && bytes.size() >= longest) {
    std::fprintf(stderr, "socks5: waits for more than a message has\n");
    std::abort();
  }
  const auto* message = std::get_if<Message>(&whole);
  if (message == nullptr) return;
  if (message->size > bytes.size()) std::abort();
  for (std::size_t n = 0; n < message->size; ++n) {
    if (!std::holds_alternative<NeedMore>(parse(bytes.first(n)))) std::abort();
  }
  if (!std::holds_alternative<Message>(parse(bytes.first(message->size)))) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const Bytes bytes(data, size);
  check<Greeting>(bytes, parse_greeting, 257);
  check<Request>(bytes, parse_request, 262);
  return 0;
}
