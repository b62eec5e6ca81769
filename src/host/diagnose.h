// Why a sandbox can't start here, and how to get it.
#pragma once

#include <string>

#include "base/error.h"
#include "plan/plan.h"

namespace sandy::host {

// `messages`: what the launcher and bubblewrap printed, untrusted text; `symptom`: what the session saw. Looks at the host for the cause.
Error explain_start_failure(const plan::SandboxPlan& plan, const std::string& messages, const Error& symptom);

}  // namespace sandy::host
