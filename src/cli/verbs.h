// The verbs of `sandy`. Each adds its subcommand, with what runs when it was given.
#pragma once

#include <CLI/CLI.hpp>

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace sandy::cli {

// Exit statuses of `sandy` itself, as env(1), timeout(1) and shells have them. A command's own status is passed through.
inline constexpr int kTimedOut = 124, kCouldNotStart = 125, kUsage = 2;

inline constexpr char kCommandStatuses[] =
    "Exit status: the command's own; 128+N after signal N; 124 after a time limit; 125 where the sandbox could not start;\n"
    "126 and 127 where the command could not be run or was not found.";

// Whether a verb's exit status is a command's.
inline bool has_status_of_command(std::string_view verb) { return verb == "run" || verb == "shell" || verb == "exec" || verb == "attach"; }

// Set by the verb that ran: what main() returns.
struct ExitStatus {
  int value = 0;
};

// `selected`: this verb is the first argument, or `completion` is. A verb makes its options only then: all of them together would cost a
// millisecond of each start.
void add_attach(CLI::App& app, ExitStatus& status);
void add_check(CLI::App& app, ExitStatus& status);
void add_completion(CLI::App& app, ExitStatus& status);
void add_create(CLI::App& app, ExitStatus& status, bool selected);
void add_doctor(CLI::App& app, ExitStatus& status);
void add_exec(CLI::App& app, ExitStatus& status);
void add_logs(CLI::App& app, ExitStatus& status);
void add_plan(CLI::App& app, ExitStatus& status, bool selected);
void add_policy(CLI::App& app, ExitStatus& status);
void add_prune(CLI::App& app, ExitStatus& status);
void add_ps(CLI::App& app, ExitStatus& status);
void add_rm(CLI::App& app, ExitStatus& status);
void add_run(CLI::App& app, ExitStatus& status, bool selected);
void add_serve(CLI::App& app, ExitStatus& status);
void add_stats(CLI::App& app, ExitStatus& status);
void add_stop(CLI::App& app, ExitStatus& status);
void add_shell(CLI::App& app, ExitStatus& status, bool selected);
void add_verify(CLI::App& app, ExitStatus& status, bool selected);

// A command's words as they were typed: main() marks some of them, for CLI11 to leave them alone.
inline constexpr char kWordMark = '\x01';
std::vector<std::string> unmarked_words(std::vector<std::string> words);

// "sandy: what: why" and the hint, on stderr.
void print_error(const Error& error);
// "sandy: TEXT" on stderr.
void note(const std::string& text);

}  // namespace sandy::cli
