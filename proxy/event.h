// What the proxy tells `sandy`: a line of the audit. Values only.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"

namespace sandy::proxy {

struct Event {
  enum class Verdict {
    allowed,
    denied,  // by the policy
    failed,  // allowed, but it could not be reached
    closed,  // an allowed connection that has ended
  };
  Verdict verdict = Verdict::denied;
  std::string target;    // "NAME:PORT", "ADDRESS:PORT", for DNS "NAME": printable
  std::string protocol;  // dns, tcp, tls, http, connect, socks5
  std::string reason;    // the rule that allows, or words for why not
  std::string address;   // that was dialled, if one was
  std::uint64_t bytes_up = 0, bytes_down = 0, duration_ms = 0;  // closed
};

// Text of a peer's, for an event: printable, and cut where it is longer than anybody reads.
inline std::string shown(std::string_view text) {
  constexpr std::size_t kMax = 200;
  return printable(text.substr(0, kMax)) + (text.size() > kMax ? "..." : "");
}

class EventSink {
 public:
  virtual ~EventSink() = default;
  virtual void on_event(Event event) = 0;
  // Whether this may be connected to is to be answered (SandboxNetwork::answer).
  virtual void on_question(std::uint32_t number, const std::string& target) = 0;
  // Nobody has answered it, and it is no more.
  virtual void on_expired(std::uint32_t number) = 0;
};

}  // namespace sandy::proxy
