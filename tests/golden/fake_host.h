// A host that is only described: paths, links and types as data, so that plans are tested without a look at the machine.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/error.h"
#include "plan/plan.h"
#include "policy/caller.h"
#include "policy/policy.h"

namespace sandy::testing {

class FakeHost {
 public:
  // A merged-usr system with one user: uid 1000, /home/user, and Sandy's state below it.
  FakeHost();
  // That, changed by the "host" object of a golden case (tests/golden/README.md).
  static Result<FakeHost> from_json(const nlohmann::json& host);

  // Adds an entry, and directories for its parents.
  void add(const std::string& path, plan::FileType type);
  void add_link(const std::string& path, const std::string& target);
  void remove(const std::string& path);

  // What host/path_resolver.h says on a real host; ELOOP is an error.
  Result<plan::HostPath> resolve(const std::string& path) const;

  // Validated for this host's caller. The text is a policy file.
  Result<policy::SandboxPolicy> policy(std::string_view json) const;
  // The facts that a plan for this policy needs.
  Result<plan::HostFacts> facts(const policy::PolicyFields& policy) const;
  Result<plan::SandboxPlan> plan(std::string_view policy_json) const;

  struct Node {
    plan::FileType type = plan::FileType::directory;
    std::string target;  // of a link, otherwise ""
  };
  const std::map<std::string, Node>& nodes() const { return nodes_; }
  policy::Caller caller{"/home/user", "/home/user/project", "/home/user/.local/state/sandy", 1000};
  plan::HostFacts base;  // all but `paths` and `state_dir`

 private:
  std::map<std::string, Node> nodes_;
};

// JSON text of a path in a case: as it stands, or "base64:…" for bytes that JSON can't hold.
std::string path_from_json(const std::string& text);

}  // namespace sandy::testing
