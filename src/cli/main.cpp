// sandy: runs commands that nobody vetted, without root, daemon or container engine.
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <string_view>

#include "cli/verbs.h"
#include "host/children.h"

namespace sandy::cli {

void print_error(const Error& error) { std::fprintf(stderr, "sandy: %s\n", error.text().c_str()); }

}  // namespace sandy::cli

namespace {

// Many sandboxes mean many descriptors; what we start gets limits of its own.
void raise_open_files() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

// Closed ones would get the numbers of descriptors of ours, and a sandbox's output would go there.
void open_standard_descriptors() {
  int fd = 0;
  do {
    fd = ::open("/dev/null", O_RDWR);
  } while (fd >= 0 && fd < 2);
  if (fd > 2) ::close(fd);
}

}  // namespace

int main(int argc, char** argv) {
  open_standard_descriptors();
  CLI::App app("Sandy runs commands in a sandbox on this machine: no root, no daemon, no container engine.", "sandy");
  app.set_version_flag("--version", "sandy " SANDY_VERSION);
  app.require_subcommand(1);
  app.footer("Exit status: the command's own; 128+N after signal N; 124 after the time limit; 125 where the sandbox could not start;\n"
             "126 and 127 where the command could not be run or was not found.");
  sandy::cli::ExitStatus status;
  const std::string_view first = argc > 1 ? argv[1] : "";
  sandy::cli::add_run(app, status, first == "run");
  sandy::cli::add_shell(app, status, first == "shell");
  sandy::cli::add_plan(app, status, first == "plan");
  sandy::cli::add_check(app, status);
  sandy::cli::add_doctor(app, status);
  sandy::cli::add_serve(app, status);
  raise_open_files();
  sandy::host::prepare_for_children();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const int code = app.exit(error);
    if (code == 0) return 0;
    // Not to be taken for a status of the command.
    return first == "run" || first == "shell" ? sandy::cli::kCouldNotStart : sandy::cli::kUsage;
  }
  sandy::host::end_last_orphans(std::chrono::seconds(2));
  return status.value;
}
