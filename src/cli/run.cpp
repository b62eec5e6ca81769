#include <unistd.h>

#include <optional>

#include "cli/foreground_command.h"
#include "cli/outcome_file.h"
#include "cli/policy_flags.h"
#include "cli/verbs.h"
#include "policy/sizes.h"
#include "session/planning.h"

namespace sandy::cli {
namespace {

struct RunOptions {
  PolicyFlags policy;
  std::vector<std::string> command;
  std::optional<std::string> timeout, json, audit;
  std::string tty = "auto";
  bool ask = false;
};

// A terminal that we are in the foreground of. In the background its use would stop us (SIGTTOU).
bool at_a_terminal() {
  return ::isatty(0) == 1 && ::isatty(1) == 1 && ::isatty(2) == 1 && ::tcgetpgrp(0) == ::getpgrp();
}

int run(RunOptions& options) {
  OutcomeFile outcome;
  if (options.json) {
    auto opened = OutcomeFile::open(*options.json);
    if (!opened) return print_error(opened.error()), kCouldNotStart;
    outcome = std::move(*opened);
  }
  const auto could_not_start = [&](const Error& error) {
    const Error shown = in_flags(error);
    print_error(shown);
    outcome.write(shown, kCouldNotStart);
    return kCouldNotStart;
  };
  const policy::Caller caller = session::this_caller();
  auto draft = options.policy.draft(caller);
  if (!draft) return could_not_start(draft.error());
  // Alone it is a network in which nothing is but what is asked for.
  if (options.ask && !draft->network.mode) draft->network.mode = policy::Text{"allowlist", "--ask"};
  const auto policy = session::validate_here(*draft);
  if (!policy) return could_not_start(policy.error());
  ForegroundOptions foreground;
  foreground.argv = unmarked_words(options.command);
  foreground.tty = options.tty == "always" || (options.tty == "auto" && at_a_terminal());
  foreground.policy_file = options.policy.policy_file();
  if (options.ask) {
    if (::isatty(0) != 1) return could_not_start({"--ask", "standard input is no terminal to ask at", "leave it out, and name what is allowed with --allow-domain"});
    if ((*policy)->network.mode == policy::NetworkMode::none) return could_not_start({"--ask", "the sandbox has no network", "take a policy with network.mode \"allowlist\", or none"});
    foreground.ask = true;
  }
  if (options.audit) {
    if (options.audit->empty()) return could_not_start({"--audit", "an empty value", "leave the option out, or name a file"});
    foreground.audit = *options.audit;
  }
  if (options.timeout) {
    const auto limit = policy::parse_duration({*options.timeout, "--timeout"});
    if (!limit) return could_not_start(limit.error());
    foreground.timeout_ms = *limit;
  }
  return run_in_foreground(*policy, foreground, outcome);
}

}  // namespace

void add_run(CLI::App& app, ExitStatus& status, bool selected) {
  auto* verb = app.add_subcommand("run", "Run a command in a sandbox; the current directory is writable");
  if (!selected) return;
  auto options = std::make_shared<RunOptions>();
  options->policy.add_to(*verb);
  verb->add_option("--timeout", options->timeout, "End the command after this time, e.g. 30 or 10m")->type_name("TIME");
  verb->add_option("--tty", options->tty, "A terminal of its own: auto (if all three of ours are terminals, and we are in the foreground), always, never")
      ->type_name("auto|always|never")
      ->check(CLI::IsMember({"auto", "always", "never"}).description(""));  // the type's name says it
  verb->add_option("--audit", options->audit, "Append each decision about the network to this file, a line of JSON each")->type_name("FILE");
  verb->add_flag("--ask", options->ask, "Ask at the terminal for what no rule of the network names");
  verb->add_option("--json", options->json, "Write the outcome to this file as JSON")->type_name("FILE");
  verb->add_option("command", options->command, "The command and its arguments, after --")->required()->type_name("CMD...");
  verb->footer("Example: sandy run --timeout 10m -- make test\n" + std::string(kCommandStatuses));
  verb->positionals_at_end();
  verb->callback([options, &status] { status.value = run(*options); });
}

void add_shell(CLI::App& app, ExitStatus& status, bool selected) {
  auto* verb = app.add_subcommand("shell", "An interactive shell in a sandbox; the current directory is writable");
  if (!selected) return;
  auto options = std::make_shared<RunOptions>();
  options->policy.add_to(*verb);
  verb->add_flag("--ask", options->ask, "Ask at the terminal for what no rule of the network names");
  verb->footer(kCommandStatuses);
  verb->callback([options, &status] {
    if (::isatty(0) != 1) {
      print_error({"sandy shell", "standard input is not a terminal", "use `sandy run -- sh` for a script"});
      status.value = kCouldNotStart;
      return;
    }
    options->tty = "always";
    options->command = {::access("/bin/bash", X_OK) == 0 ? "/bin/bash" : "/bin/sh"};
    status.value = run(*options);
  });
}

}  // namespace sandy::cli
