#include "plan/seccomp/builtin_text.h"
#include "plan/seccomp/seccomp_policy.h"

namespace sandy::seccomp {

Result<const Policy*> builtin(std::string_view name) {
  // Strict extends default, so the two can't be one object.
  static const auto policy_of = [](const Result<Policy>& policy) -> Result<const Policy*> {
    if (!policy) return std::unexpected(policy.error());
    return &*policy;
  };
  if (name == "default") {
    static const Result<Policy> policy = parse_policy(kDefaultPolicyText, "default.json");
    return policy_of(policy);
  }
  if (name == "strict") {
    static const Result<Policy> policy = parse_policy(kStrictPolicyText, "strict.json");
    return policy_of(policy);
  }
  if (name == "proxy") {
    static const Result<Policy> policy = parse_policy(kProxyPolicyText, "proxy.json");
    return policy_of(policy);
  }
  return fail("seccomp policy \"" + printable(name) + "\"", "no such built-in policy",
              "built-in: default, strict, proxy");
}

}  // namespace sandy::seccomp
