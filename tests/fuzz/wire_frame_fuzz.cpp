// links: sandy_wire
// Frames, as either end reads them: sizes, header, arguments. What is accepted keeps the protocol's limits, its arguments lie in
// the payload, and it is read the same again after it was written.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "broken.h"
#include "session/wire/frame.h"

namespace {

using namespace sandy;

std::size_t depth_of(const wire::Json& value) {
  std::size_t deepest = 0;
  if (!value.is_structured()) return 0;
  for (const auto& child : value) deepest = std::max(deepest, depth_of(child));
  return deepest + 1;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string input(data, data + size);
  std::string_view rest = input;
  while (rest.size() >= wire::kPrefixBytes) {
    const auto sizes = wire::read_sizes(rest, wire::kMaxReplyPayload);
    if (!sizes) return 0;
    if (sizes->header < 2 || sizes->header > wire::kMaxHeaderBytes || sizes->payload > wire::kMaxReplyPayload) broken("the limits");
    rest.remove_prefix(wire::kPrefixBytes);
    if (rest.size() < sizes->header) return 0;
    auto frame = wire::parse_header(rest.substr(0, sizes->header));
    rest.remove_prefix(sizes->header);
    if (!frame) {
      if (frame.error().why.empty() || printable(frame.error().text()).size() > 4096) broken("the error's text");
      return 0;
    }
    if (depth_of(frame->header) > static_cast<std::size_t>(wire::kMaxDepth)) broken("the nesting");
    frame->payload = rest.substr(0, sizes->payload);
    rest.remove_prefix(frame->payload.size());
    if (const auto cut = frame->cut()) {
      if (cut->args.size() > wire::kMaxArgs) broken("the number of arguments");
      std::string together;
      for (const auto argument : cut->args) together += argument;
      together += cut->data;
      if (together != frame->payload) broken("the cut");
    }
    const std::string head = wire::encode_head(frame->header, frame->payload.size());
    const auto again = wire::parse_header(std::string_view(head).substr(wire::kPrefixBytes));
    if (!again || again->header != frame->header || again->id != frame->id) broken("a header that is written is not read the same");
    for (const char* key : {"id", "op", "ev", "bytes", "args"}) {
      (void)frame->word(key);
      (void)frame->number(key, 0);
      (void)frame->flag(key, false);
    }
  }
  return 0;
}
