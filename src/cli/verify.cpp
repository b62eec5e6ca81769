// sandy verify: attacks the sandbox, and says of each attack that it was refused, or not.
#include <signal.h>

#include <algorithm>
#include <cstdio>
#include <memory>

#include "cli/policy_flags.h"
#include "cli/verbs.h"
#include "session/planning.h"
#include "verify/verification.h"

namespace sandy::cli {
namespace {

struct VerifyOptions {
  PolicyFlags policy;
  std::vector<std::string> classes;
  bool json = false;
};

std::vector<std::string> class_words() {
  std::vector<std::string> out;
  for (const auto attack_class : verify::kClasses) out.emplace_back(verify::word(attack_class));
  return out;
}

int verify_here(VerifyOptions& options) {
  ::signal(SIGPIPE, SIG_IGN);
  const policy::Caller caller = session::this_caller();
  auto draft = options.policy.draft(caller);
  if (!draft) return print_error(in_flags(draft.error())), kCouldNotStart;
  verify::Options attacks;
  attacks.names_workspace = options.policy.names_workspace() || !draft->filesystem.workspace.path || draft->filesystem.workspace.path->key != kCurrentDirectory;
  attacks.draft = std::move(*draft);
  attacks.policy_file = options.policy.policy_file();
  for (const auto attack_class : verify::kClasses) {
    if (options.classes.empty() || std::ranges::find(options.classes, verify::word(attack_class)) != options.classes.end()) attacks.classes.insert(attack_class);
  }
  const auto report = verify::verify(std::move(attacks));
  if (!report) return print_error(in_flags(report.error())), kCouldNotStart;
  std::fputs((options.json ? verify::as_json(*report) : verify::as_table(*report)).c_str(), stdout);
  return report->count(verify::Verdict::fail) == 0 ? 0 : 1;
}

}  // namespace

void add_verify(CLI::App& app, ExitStatus& status, bool selected) {
  auto* verb = app.add_subcommand("verify", "Attack sandboxes of a policy, and report what was refused");
  if (!selected) return;
  auto options = std::make_shared<VerifyOptions>();
  options->policy.add_to(*verb);
  verb->add_flag("--json", options->json, "As JSON (version 1)");
  verb->add_option("--class", options->classes, "Only attacks of this class (repeatable)")
      ->type_name("network|sockets|syscalls|files|processes|host-side|limits")
      ->check(CLI::IsMember(class_words()).description(""))
      ->allow_extra_args(false);
  verb->footer("Each attack is tried outside a sandbox too, as the control: what fails there as well is \"not possible to try here\".\n"
               "Exit status: 0 where all was refused; 1 where an attack succeeded; 125 where no sandbox can be started; 2 for wrong arguments.");
  verb->callback([options, &status] { status.value = verify_here(*options); });
}

}  // namespace sandy::cli
