// A request that is open: what the agent does with the frames that follow its first one.
#pragma once

#include "session/wire/frame.h"

namespace sandy::agent {

class Request {
 public:
  virtual ~Request() = default;
  // A `data`, `eof`, `credit`, `cancel`, `signal` or `resize` frame of this request. Called in the agent's loop.
  virtual void on_frame(wire::Frame frame) = 0;
};

}  // namespace sandy::agent
