// The effective policy as JSON: every default filled in, every path in full.
#pragma once

#include <string>

#include "policy/policy.h"

namespace sandy::policy {

// Canonical: keys in the order of the documentation, lists and variables sorted, two spaces of
// indent, a final newline; equal policies give equal text, apart from PathRule::key. read_policy()
// reads it back, and validate() of that gives the same fields. Printable: what is no printable
// UTF-8 text is written as {"bytes": base64}.
std::string to_json(const PolicyFields& fields);
std::string to_json(const SandboxPolicy& policy);

}  // namespace sandy::policy
