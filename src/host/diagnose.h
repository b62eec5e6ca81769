// Why a sandbox can't start here, and how to get it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "plan/plan.h"

namespace sandy::host {

// What a message of bubblewrap's or the launcher's means, in our words.
struct KnownMessage {
  std::string why, fix;
  bool about_namespaces = false;  // the probe by trying knows more about the cause, if it fails too
};

// Pure. Nothing for messages that explain themselves or that nobody has met.
std::optional<KnownMessage> known_message(std::string_view messages);

// `messages`: what the launcher and bubblewrap printed, untrusted text; `symptom`: what the session saw. Looks at the host for the cause.
// All three parts of the error are there, and printable.
Error explain_start_failure(const plan::SandboxPlan& plan, const std::string& messages, const Error& symptom);

}  // namespace sandy::host
