#include "cli/command_end.h"

#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <stdexcept>
#include <string_view>

#include "cli/verbs.h"

namespace sandy::cli {
namespace {

using wire::Json;

// Where our own PATH has a program that the sandbox lacks; "" where it has none.
std::string place_on_host(const std::string& program) {
  if (program.find('/') != std::string::npos) return {};
  std::string_view path = std::getenv("PATH") == nullptr ? "" : std::getenv("PATH");
  while (!path.empty()) {
    const std::string_view directory = path.substr(0, path.find(':'));
    const std::string candidate = std::string(directory) + "/" + program;
    if (directory.starts_with('/') && ::access(candidate.c_str(), X_OK) == 0) return candidate;
    path.remove_prefix(std::min(directory.size() + 1, path.size()));
  }
  return {};
}

}  // namespace

void note_refusals(const Json& end) {
  for (const auto& denial : end.value("denials", Json::array())) {
    note((denial.value("failed", false) ? "not reached: " : "blocked: ") + denial.value("target", "") + " (" + denial.value("reason", "") + ")");
  }
  if (const auto more = end.value("more_denials", std::uint64_t{0}); more > 0) note("blocked: " + std::to_string(more) + " more");
  for (const auto& text : end.value("limit_notes", Json::array())) note(text.get<std::string>());
}

int status_of(const Json& end, const RelayOptions& options, const std::string& cwd, int cancelled_by) {
  const auto number = [&](const char* key) { return end.value(key, std::int64_t{0}); };
  if (cancelled_by == SIGPIPE) return 128 + SIGPIPE;
  if (end.value("wall_time", false)) {
    note("timed out: " + printable(end.value("detail", "")));
    return kTimedOut;
  }
  if (end.contains("error")) {
    note("the command was cut off: " + printable(end.value("detail", std::string(end.value("error", "")))));
    return kCouldNotStart;
  }
  const std::string reason = end.value("reason", "");
  for (const char* key : {"code", "signal", "errno"}) {
    if (end.contains(key) && !end[key].is_number_integer()) throw std::invalid_argument(key);
  }
  if (reason == "exited") return static_cast<int>(number("code") & 0xFF);
  if (reason == "timed_out") {
    note("timed out after " + std::to_string(options.timeout_ms) + " ms");
    return kTimedOut;
  }
  if (reason == "could_not_start") {
    const auto error = static_cast<int>(number("errno"));
    if (end.value("cwd", false)) {
      note("the working directory " + printable(cwd) + ": " + errno_text(error));
    } else if (error == ENOENT) {
      const std::string place = place_on_host(options.argv[0]);
      note(printable(options.argv[0]) + ": command not found in the sandbox" +
           (place.empty() ? "" : "; outside it is " + printable(place) + ", and --read shows what it needs of its directory"));
    } else {
      note(printable(options.argv[0]) + ": " + errno_text(error));
    }
    return static_cast<int>(number("code"));
  }
  if (reason == "out_of_memory") return 128 + SIGKILL;
  if (reason == "signalled") {
    const auto signal = static_cast<int>(number("signal"));
    if (signal == SIGSYS) note("killed for a system call that the seccomp policy doesn't allow (32-bit programs are not supported)");
    return 128 + (signal & 127);
  }
  if (reason != "cancelled") throw std::invalid_argument("reason");
  return 128 + (cancelled_by != 0 ? cancelled_by : SIGKILL);
}

}  // namespace sandy::cli
