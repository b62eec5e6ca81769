// sandy: runs commands that nobody vetted, without root, daemon or container engine.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

#include "cli/verbs.h"
#include "host/children.h"

namespace sandy::cli {

void print_error(const Error& error) { std::fprintf(stderr, "sandy: %s\n", error.text().c_str()); }
void note(const std::string& text) { std::fprintf(stderr, "sandy: %s\n", text.c_str()); }

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

// What CLI11 has no words for: a verb that isn't there, and an option with "=" and nothing behind it, which would take the next argument.
int check_arguments(const CLI::App& app, int argc, char** argv) {
  const std::string first = argc > 1 ? argv[1] : "";
  if (first == "help") {
    std::fputs(app.help().c_str(), stdout);
    return -1;
  }
  std::string verbs;
  bool known = first.empty() || first.starts_with('-');
  for (const CLI::App* verb : app.get_subcommands({})) {
    known = known || verb->get_name() == first;
    verbs += (verbs.empty() ? "" : ", ") + verb->get_name();
  }
  if (!known) {
    std::fprintf(stderr, "sandy: no verb \"%s\": there are %s\n", sandy::printable(first).c_str(), verbs.c_str());
    return sandy::cli::kUsage;
  }
  if (first.empty() || first.starts_with('-')) return 0;
  const CLI::App* verb = app.get_subcommand(first);
  for (int i = 2; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (!word.starts_with('-') || word == "--") return 0;  // the command's words come
    const auto equals = word.find('=');
    const CLI::Option* option = verb->get_option_no_throw(std::string(word.substr(0, equals)));
    if (equals == std::string_view::npos && option != nullptr && option->get_type_size() > 0) ++i;  // its value
    if (option == nullptr || equals != word.size() - 1) continue;
    std::fprintf(stderr, "sandy: %s: an empty value (leave the option out, or give it a value)\n", sandy::printable(word).c_str());
    return sandy::cli::has_status_of_command(first) ? sandy::cli::kCouldNotStart : sandy::cli::kUsage;
  }
  return 0;
}

// What is wrong with the words, in our form of messages.
std::string wrong_words(const CLI::App& app, std::string_view verb, const CLI::Error& error) {
  const std::string program = verb.empty() || verb.starts_with('-') ? "sandy" : "sandy " + sandy::printable(verb);
  std::string what = error.what();
  if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr) {
    what.clear();
    for (const auto& word : app.remaining(true)) {
      if (word != "--") what += (what.empty() ? "" : ", ") + word;
    }
    what += ": not expected";
  }
  return program + ": " + sandy::printable(what) + "\nhint: " + program + " --help lists what can be given\n";
}

// CLI11 takes a word in brackets for a list, and a command's words are nobody's to take apart. Those from the command on that begin so are marked, and
// unmarked where the command is taken (unmarked_words()).
std::vector<std::string> marked_words(const CLI::App& app, int argc, char** argv) {
  std::vector<std::string> out(argv, argv + argc);
  const CLI::App* verb = nullptr;
  for (const CLI::App* candidate : app.get_subcommands({})) {
    if (argc > 1 && candidate->get_name() == argv[1]) verb = candidate;
  }
  if (verb == nullptr) return out;
  int i = 2;
  for (; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (!word.starts_with('-') || word == "--") break;
    const CLI::Option* option = verb->get_option_no_throw(std::string(word));
    if (option != nullptr && option->get_type_size() > 0) ++i;  // its value
  }
  for (; i < argc; ++i) {
    auto& word = out[static_cast<std::size_t>(i)];
    if (word.starts_with('[') || word.starts_with(sandy::cli::kWordMark)) word.insert(word.begin(), sandy::cli::kWordMark);
  }
  return out;
}

}  // namespace

namespace sandy::cli {

std::vector<std::string> unmarked_words(std::vector<std::string> words) {
  for (auto& word : words) {
    if (word.starts_with(kWordMark)) word.erase(0, 1);
  }
  return words;
}

}  // namespace sandy::cli

int main(int argc, char** argv) {
  open_standard_descriptors();
  CLI::App app("Sandy runs commands in a sandbox on this machine: no root, no daemon, no container engine.", "sandy");
  app.set_version_flag("--version", "sandy " SANDY_VERSION);
  app.require_subcommand(1);
  app.footer("sandy VERB --help lists the verb's options and exit statuses.");
  sandy::cli::ExitStatus status;
  const std::string_view first = argc > 1 ? argv[1] : "";
  const bool all = first == "completion";  // which is about all options
  sandy::cli::add_run(app, status, all || first == "run");
  sandy::cli::add_shell(app, status, all || first == "shell");
  sandy::cli::add_plan(app, status, all || first == "plan");
  sandy::cli::add_create(app, status, all || first == "create");
  sandy::cli::add_exec(app, status);
  sandy::cli::add_attach(app, status);
  sandy::cli::add_logs(app, status);
  sandy::cli::add_ps(app, status);
  sandy::cli::add_stop(app, status);
  sandy::cli::add_rm(app, status);
  sandy::cli::add_prune(app, status);
  sandy::cli::add_check(app, status);
  sandy::cli::add_policy(app, status);
  sandy::cli::add_doctor(app, status);
  sandy::cli::add_verify(app, status, all || first == "verify");
  sandy::cli::add_stats(app, status);
  sandy::cli::add_completion(app, status);
  sandy::cli::add_serve(app, status);
  app.failure_message([first](const CLI::App* failed, const CLI::Error& error) { return wrong_words(*failed, first, error); });
  if (const int wrong = check_arguments(app, argc, argv); wrong != 0) return wrong < 0 ? 0 : wrong;
  raise_open_files();
  sandy::host::prepare_for_children();
  try {
    auto words = marked_words(app, argc, argv);
    std::vector<char*> pointers;
    for (auto& word : words) pointers.push_back(word.data());
    app.parse(argc, pointers.data());
  } catch (const CLI::ParseError& error) {
    const int code = app.exit(error);
    if (code == 0) return 0;
    // Not to be taken for a status of the command.
    return sandy::cli::has_status_of_command(first) ? sandy::cli::kCouldNotStart : sandy::cli::kUsage;
  } catch (const std::exception& error) {
    // Asio throws where it can't have its own descriptors.
    std::fprintf(stderr, "sandy: %s: %s\nhint: where descriptors or memory ran out, raise that limit (ulimit -a)\n", std::string(first).c_str(), error.what());
    return sandy::cli::kCouldNotStart;
  }
  sandy::host::end_last_orphans(std::chrono::seconds(2));
  // A full disk must not look like success. A reader that has seen enough has no message; with SIGPIPE as usual we would not be here.
  if (const bool flushed = std::fflush(stdout) == 0; (!flushed || std::ferror(stdout) != 0) && status.value == 0) {
    pollfd output{1, POLLOUT, 0};
    if (::poll(&output, 1, 0) == 1 && (output.revents & POLLERR) != 0) return 128 + SIGPIPE;
    std::fprintf(stderr, "sandy: standard output: %s\n", flushed ? "could not be written" : sandy::errno_text(errno).c_str());
    return 1;
  }
  return status.value;
}
