// links: sandy_proxy_core
//
// A message's body, whose framing a peer chose. The same whatever pieces it comes in; written again and read again it is the same body; nothing behind its end
// is taken.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "proxy/http_body.h"

using sandy::proxy::BodyReader;
using sandy::proxy::BodyWriter;
using sandy::proxy::Framing;

namespace {

struct Outcome {
  bool failed = false, done = false;
  std::size_t taken = 0;
  std::string body;
  bool operator==(const Outcome&) const = default;
};

Outcome read(BodyReader& reader, std::string_view bytes, std::size_t piece) {
  Outcome out;
  while (!bytes.empty() && !reader.done()) {
    const auto part = bytes.substr(0, piece);
    const auto taken = reader.feed(part, out.body);
    if (!taken) {
      out.failed = true;
      return out;
    }
    if (*taken > part.size() || (*taken < part.size() && !reader.done())) std::abort();
    out.taken += *taken;
    bytes.remove_prefix(*taken);
  }
  out.done = reader.done();
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  // The first byte says which framing; the rest is the body.
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const auto framing = data[0] % 3 == 0 ? Framing::chunked : data[0] % 3 == 1 ? Framing::length : Framing::close;
  const std::uint64_t length = data[0] / 3;
  BodyReader whole(framing, length), single(framing, length);
  const Outcome at_once = read(whole, bytes, bytes.size() + 1), by_bytes = read(single, bytes, 1);
  // What is read of a body that turns out malformed is read before that is known.
  if (at_once.failed != by_bytes.failed || (!at_once.failed && at_once != by_bytes)) std::abort();
  if (at_once.failed || !at_once.done) return 0;
  std::string again, second;
  const BodyWriter writer(Framing::chunked);
  if (!at_once.body.empty()) writer.piece(again, at_once.body);
  writer.end(again, whole.trailers());
  BodyReader reread(Framing::chunked);
  const auto taken = reread.feed(again, second);
  if (!taken || *taken != again.size() || !reread.done() || second != at_once.body) std::abort();
  return 0;
}
