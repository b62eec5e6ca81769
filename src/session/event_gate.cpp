#include "session/event_gate.h"

#include <algorithm>

namespace sandy::session {
namespace {

// Besides `id` and `ev`, which every event has: at most this key, and of the right type.
bool has_at_most(const wire::Frame& event, const char* key, bool (wire::Json::*is_type)() const noexcept) {
  const auto it = event.header.find(key);
  if (it == event.header.end()) return event.header.size() == 2;
  return event.header.size() == 3 && ((*it).*is_type)();
}

}  // namespace

bool EventGate::admit(const wire::Frame& event) {
  if (ended_) return false;
  const std::string_view ev = event.ev();
  if (ev == "end") {
    ended_ = true;
    return true;
  }
  if (ev == "stdout" || ev == "stderr" || ev == "data") {
    const std::size_t charge = wire::stream_charge(event.payload.size());
    if (event.payload.empty() || charge > wire::kWindowBytes - under_way_) return false;
    under_way_ += charge;
    return has_at_most(event, "tail", &wire::Json::is_boolean);
  }
  if (!event.payload.empty()) return false;
  if (ev == "credit" || ev == "drained") {
    if (unanswered_ == 0) return false;
    --unanswered_;
    if (ev == "drained") return event.header.size() == 2;
    if (!has_at_most(event, "bytes", &wire::Json::is_number_unsigned)) return false;
    const auto bytes = event.number("bytes", 0);
    if (bytes > not_credited()) return false;
    const auto of_request = std::min<std::size_t>(request_, bytes);
    request_ -= of_request;
    data_ -= static_cast<std::size_t>(bytes) - of_request;
    return true;
  }
  if (ev != "started" || started_) return false;
  started_ = true;
  return has_at_most(event, "pid", &wire::Json::is_number_unsigned);
}

}  // namespace sandy::session
