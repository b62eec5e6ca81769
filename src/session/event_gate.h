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
  // The requester sent a frame of this request that is answered: the request itself; `data` or `drain`.
  // `bytes`: that it holds, which the agent may give credit for.
  void note_request(std::size_t bytes) {
    ++unanswered_;
    request_ = bytes;
  }
  void note_sent(std::size_t bytes = 0) {
    ++unanswered_;
    data_ += bytes;
  }
  // The requester gave back stream bytes (`credit`).
  void give_back(std::uint64_t bytes) { under_way_ -= static_cast<std::size_t>(bytes < under_way_ ? bytes : under_way_); }

  // Whether `event` keeps the protocol. If not, the agent is to be ended, and nothing of `event` used.
  bool admit(const wire::Frame& event);

  // What the requester sent, and the agent has given no credit for: in all, and behind the request itself, which an agent has read when it says anything of it.
  std::size_t not_credited() const { return request_ + data_; }
  std::size_t data_not_credited() const { return data_; }

  // What the requester has not given back (wire::stream_charge); at most wire::kWindowBytes.
  std::size_t under_way() const { return under_way_; }

 private:
  std::size_t under_way_ = 0, request_ = 0, data_ = 0;
  std::uint64_t unanswered_ = 0;  // frames that a `credit` or `drained` event may still answer
  bool started_ = false, ended_ = false;
};

}  // namespace sandy::session
