// How a command ended, as its hostile agent says, made into what the protocol says. Pure.
#pragma once

#include "session/wire/frame.h"

namespace sandy::session {

// A command's `end`: `id`, `ev`, and of the rest what PROTOCOL.md has for `exec`, each of its type and range, texts printable. Whatever else the agent put there is gone, which is far less than a header may hold. One that doesn't say how
// the command ended becomes an error.
wire::Json command_result(const wire::Json& end);

}  // namespace sandy::session
