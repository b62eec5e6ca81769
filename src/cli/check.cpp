#include <cstdio>

#include "cli/policy_source.h"
#include "cli/verbs.h"
#include "policy/enforcement.h"
#include "policy/json_reader.h"
#include "policy/json_writer.h"
#include "session/planning.h"

namespace sandy::cli {
namespace {

struct CheckOptions {
  std::string file;
  bool effective = false;
};

int check(const CheckOptions& options) {
  const auto source = read_policy_source(options.file, session::this_caller());
  if (!source) return print_error(source.error()), 1;
  const auto refuse = [&](Error error) {
    print_error({printable(options.file) + ": " + error.what, error.why, error.fix});
    return 1;
  };
  const auto draft = policy::read_policy(source->text);
  if (!draft) return refuse(draft.error());
  const auto policy = session::validate_here(*draft);
  if (!policy) return refuse(policy.error());
  const auto weakenings = session::weakenings_here(*policy);
  if (!weakenings) return print_error(weakenings.error()), 1;
  const auto missing = session::missing_here(*policy);
  if (!missing) return print_error(missing.error()), 1;
  const auto seccomp = session::seccomp_weakenings(policy->fields().seccomp);
  if (!seccomp) return print_error(seccomp.error()), 1;
  if (options.effective) {
    std::fputs(policy::to_json(*policy).c_str(), stdout);
    return 0;
  }
  std::printf("%s: valid%s\n", printable(options.file).c_str(), missing->empty() ? "" : ", but no sandbox starts with it on this machine");
  if (weakenings->empty() && seccomp->empty()) std::puts("It weakens nothing of the default sandbox.");
  for (const auto& weakening : *weakenings) std::printf("weakens: %s: %s\n", printable(weakening.key).c_str(), weakening.sentence.c_str());
  for (const auto& sentence : *seccomp) std::printf("weakens: seccomp: %s\n", printable(sentence).c_str());
  for (const auto& path : *missing) std::printf("not there: %s\n", path.c_str());
  if (const auto unenforced = policy::unenforced_words(policy->degraded()); !unenforced.empty()) std::puts(unenforced.c_str());
  return 0;
}

}  // namespace

void add_check(CLI::App& app, ExitStatus& status) {
  auto* verb = app.add_subcommand("check", "Is this policy valid, and what does it weaken?");
  auto options = std::make_shared<CheckOptions>();
  verb->add_option("file", options->file, "Policy file (JSON), or the name of one (sandy policy list); - is standard input")->required()->type_name("POLICY|FILE");
  verb->add_flag("--effective", options->effective, "Print the policy with all defaults filled in");
  verb->footer("Exit status: 0 if it is valid, be it for another machine whose paths are not here, which is said; 1 if not; 2 for wrong arguments.");
  verb->callback([options, &status] { status.value = check(*options); });
}

}  // namespace sandy::cli
