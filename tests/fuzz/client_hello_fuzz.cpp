// links: sandy_proxy_core
//
// The first bytes of a connection. The result is the same whatever segments they come in, and once it is known, more bytes change nothing.
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "proxy/client_hello.h"

using sandy::proxy::ClientHelloReader;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span<const std::uint8_t> bytes(data, size);
  ClientHelloReader whole, single;
  whole.feed(bytes);
  for (std::size_t i = 0; i < size; ++i) {
    const auto before = single.state();
    single.feed(bytes.subspan(i, 1));
    if (before != ClientHelloReader::State::need_more && single.state() != before) std::abort();
  }
  if (whole.state() != single.state() || whole.server_name() != single.server_name()) {
    std::fprintf(stderr, "client_hello: segments make a difference\n");
    std::abort();
  }
  if (whole.server_name() && (whole.server_name()->empty() || whole.server_name()->size() > ClientHelloReader::kMaxMessage)) std::abort();
  return 0;
}
