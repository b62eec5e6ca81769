#include "policy/validate.h"

#include "policy/filesystem_rules.h"
#include "policy/json_keys.h"
#include "policy/json_reader.h"
#include "policy/json_writer.h"
#include "policy/network.h"
#include "policy/settings.h"
#include "policy/sizes.h"

namespace sandy::policy {

// The one maker of SandboxPolicy.
class Validator {
 public:
  Validator(const PolicyDraft& draft, const Enforcement& enforcement)
      : draft_(draft), enforcement_(enforcement) {}

  Result<SandboxPolicy> validate(const Caller& caller) {
    auto filesystem = check_filesystem(draft_.filesystem, caller);
    if (!filesystem) return std::unexpected(filesystem.error());
    auto network = check_network(draft_.network);
    if (!network) return std::unexpected(network.error());
    auto limits = check_limits(draft_.limits);
    if (!limits) return std::unexpected(limits.error());
    auto seccomp = check_seccomp(draft_.seccomp, caller);
    if (!seccomp) return std::unexpected(seccomp.error());
    auto environment = check_environment(draft_.environment);
    if (!environment) return std::unexpected(environment.error());
    auto process = check_process(draft_.process);
    if (!process) return std::unexpected(process.error());
    auto description = check_description(draft_.description);
    if (!description) return std::unexpected(description.error());

    PolicyFields fields{std::move(*filesystem), std::move(*network),     std::move(*limits),
                        std::move(*seccomp),    std::move(*environment), std::move(*process),
                        std::move(*description)};
    auto degraded = degraded_limits(fields);
    if (!degraded) return std::unexpected(degraded.error());
    // What goes over the wire and into files must be readable again.
    if (to_json(fields).size() > kMaxPolicyBytes) {
      return fail("policy", "larger than " + std::to_string(kMaxPolicyBytes) + " bytes as JSON");
    }
    return SandboxPolicy(std::move(fields), std::move(*degraded));
  }

 private:
  Result<std::vector<std::string>> degraded_limits(const PolicyFields& fields) {
    std::vector<std::string> degraded;
    for (const UnenforceableLimit& limit : unenforceable(fields, enforcement_)) {
      if (limit.by_hand && !fields.limits.best_effort) {
        const Text text = as_written(limit.key);
        return fail(quoted(text.key, text.value), enforcement_.reason,
                    (enforcement_.fix.empty() ? "" : enforcement_.fix + "; or ") + "leave it out, or set limits.best_effort to run without it");
      }
      degraded.emplace_back(limit.key);
    }
    return degraded;
  }

  // What the draft has under a key of the table.
  Text as_written(std::string_view path) {
    if (const PolicyKey* key = find_key(path)) {
      if (const auto* slot = std::get_if<TextSlot>(&key->slot)) {
        if (const OptionalText& text = (*slot)(draft_)) return *text;
      }
    }
    return Text{"", std::string(path)};
  }

  PolicyDraft draft_;
  const Enforcement& enforcement_;
};

Result<SandboxPolicy> validate(const PolicyDraft& draft, const Caller& caller,
                               const Enforcement& enforcement) {
  return Validator(draft, enforcement).validate(caller);
}

}  // namespace sandy::policy
