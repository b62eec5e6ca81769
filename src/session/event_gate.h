// Which of an agent's events for one request are passed on. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "session/wire/frame.h"

namespace sandy::session {

// The agent is not trusted: whatever it sends, what waits for a requester that doesn't read stays bounded. So an event that
// is passed on either carries stream data, which the requester's credit limits, or comes at most as often as the requester sent
// something; and its header holds nothing but the few words that its kind has (PROTOCOL.md).
class EventGate {
 public:
  // The requester sent a frame of this request that is answered: the request itself, `data`, or `drain`.
  void note_sent() { ++unanswered_; }
  // The requester gave back stream bytes (`credit`).
  void give_back(std::uint64_t bytes) { under_way_ -= static_cast<std::size_t>(bytes < under_way_ ? bytes : under_way_); }

  // Whether `event` keeps the protocol. If not, the agent is to be ended, and nothing of `event` used.
  bool admit(const wire::Frame& event);

  // What the requester has not given back (wire::stream_charge); at most wire::kWindowBytes.
  std::size_t under_way() const { return under_way_; }

 private:
  std::size_t under_way_ = 0;
  std::uint64_t unanswered_ = 0;  // frames that a `credit` or `drained` event may still answer
  bool started_ = false, ended_ = false;
};

}  // namespace sandy::session
