// One line of `sandy doctor`: something that this machine has or lacks.
#pragma once

#include <string>

#include "base/error.h"

namespace sandy::host {

enum class CapabilityState {
  ok,
  limited,  // there, with a lack that is named
  missing,
};

// Every text is printable, and only `fix` may be empty: where the state is ok.
struct Capability {
  std::string name;    // stable, for programs: "user namespaces"
  CapabilityState state = CapabilityState::missing;
  std::string detail;  // what was found; where the state isn't ok, the cause on this machine
  std::string needs;   // what depends on it
  std::string fix;     // the command, or what to do
  bool proven_by_start = false;  // where a whole sandbox started, it is there, whatever this process found out alone
};

inline const char* word(CapabilityState state) {
  switch (state) {
    case CapabilityState::ok: return "ok";
    case CapabilityState::limited: return "limited";
    case CapabilityState::missing: return "missing";
  }
  return "missing";
}

}  // namespace sandy::host
