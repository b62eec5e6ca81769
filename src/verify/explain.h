// What in a policy allows what an attack has done, for the person who wrote it. Pure. "" where nothing of it does, or that isn't known.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "policy/policy.h"

namespace sandy::verify {

// The rule that shows one of these paths of the host; with `writing`, that lets it be changed. `targets`: what the policy's own paths lead to, of those
// that have symbolic links in them; `paths` have none.
std::string shown_by(const policy::PolicyFields& policy, const std::vector<std::string>& paths, bool writing, const std::map<std::string, std::string>& targets = {});

// A system call.
std::string permitted_by(const policy::PolicyFields& policy, bool traces = false);

// A variable of the caller's environment.
std::string passed_by(const policy::PolicyFields& policy, const std::string& name);

// A connection: `host` is a name, or an address.
std::string reached_by(const policy::PolicyFields& policy, const std::string& host, std::uint16_t port);
// That a name has an address.
std::string resolved_by(const policy::PolicyFields& policy, const std::string& name);

}  // namespace sandy::verify
