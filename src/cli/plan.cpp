#include "plan/dump.h"

#include <cstdio>

#include "cli/policy_flags.h"
#include "cli/verbs.h"
#include "plan/seccomp/seccomp_policy.h"
#include "session/planning.h"

namespace sandy::cli {
namespace {

struct PlanOptions {
  PolicyFlags policy;
  bool json = false, seccomp = false;
};

int show_plan(PlanOptions& options) {
  const policy::Caller caller = session::this_caller();
  auto draft = options.policy.draft(caller);
  if (!draft) return print_error(in_flags(draft.error())), kCouldNotStart;
  const auto policy = session::validate_here(*draft);
  if (!policy) return print_error(in_flags(policy.error())), kCouldNotStart;
  const auto planned = session::plan_here(*policy, {options.policy.policy_file()});
  if (!planned) return print_error(in_flags(planned.error())), kCouldNotStart;
  const auto rows = session::seccomp_rows(policy->fields().seccomp);
  if (!rows) return print_error(in_flags(rows.error())), kCouldNotStart;
  std::fputs((options.json ? plan::dump_json(planned->plan, *rows) : plan::dump_text(planned->plan, *rows)).c_str(), stdout);
  return 0;
}

}  // namespace

void add_plan(CLI::App& app, ExitStatus& status, bool selected) {
  auto* verb = app.add_subcommand("plan", "Show what `run` would do, one bubblewrap option a line; nothing is started");
  if (!selected) return;
  auto options = std::make_shared<PlanOptions>();
  options->policy.add_to(*verb);
  verb->add_flag("--json", options->json, "As JSON");
  auto command = std::make_shared<std::vector<std::string>>();
  verb->add_option("command", *command, "Taken and not run, so that `run` can be replaced by `plan`")->type_name("CMD...");
  verb->footer("Exit status: 0; 125 where `run` could not start; 2 for wrong arguments.");
  verb->positionals_at_end();
  verb->callback([options, command, &status] { status.value = show_plan(*options); });
}

}  // namespace sandy::cli
