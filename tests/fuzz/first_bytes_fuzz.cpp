// links: sandy_proxy
//
// What protocol a client speaks: the same whatever segments its bytes come in, and final once it is known.
#include <cstdint>
#include <cstdlib>

#include "proxy/first_bytes.h"

using sandy::proxy::FirstBytes;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span<const std::uint8_t> bytes(data, size);
  FirstBytes whole, single;
  whole.feed(bytes);
  for (std::size_t i = 0; i < size; ++i) {
    const auto before = single.kind();
    single.feed(bytes.subspan(i, 1));
    if (before != FirstBytes::Kind::unknown && single.kind() != before) std::abort();
  }
  if (whole.kind() != single.kind() || whole.server_name() != single.server_name()) std::abort();
  return 0;
}
