// links: sandy_event_gate
// What a hostile agent sends for one request: a line is a header, a TAB and the payload's length; "+" is a frame of the requester, "-N" is
// credit. Whatever comes, what was passed on and not given back stays bounded.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "broken.h"
#include "session/event_gate.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace sandy;
  const std::string input(data, data + size);
  session::EventGate gate;
  std::size_t sent = 0, without_data = 0, waiting = 0;
  bool ended = false;
  for (std::string_view rest = input; !rest.empty();) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    if (line == "+") {
      gate.note_sent(1'000'000);
      ++sent;
      continue;
    }
    if (line.starts_with('-')) {
      const auto bytes = std::strtoull(std::string(line.substr(1)).c_str(), nullptr, 10);
      gate.give_back(bytes);
      waiting -= std::min<std::size_t>(waiting, bytes);
      continue;
    }
    const auto tab = std::min(line.find('\t'), line.size());
    auto event = wire::parse_header(line.substr(0, tab));
    if (!event) continue;
    const auto length = std::strtoull(std::string(line.substr(tab)).c_str(), nullptr, 10);
    event->payload.assign(std::min<std::size_t>(length, wire::kMaxReplyPayload), 'x');
    if (!gate.admit(*event)) return 0;  // the sandbox ends here
    if (ended) broken("an event after the end");
    if (event->ev() == "end") {
      ended = true;
      continue;
    }
    if (event->header.dump().size() > 128) broken("the size of a header");
    if (!event->payload.empty()) waiting += std::max<std::size_t>(event->payload.size(), wire::kLeastCharge);
    if (event->payload.empty()) ++without_data;
    if (waiting > wire::kWindowBytes || waiting != gate.under_way()) broken("the bytes under way");
    if (without_data > sent + 1) broken("the number of events without data");
  }
  return 0;
}
