#include "host/diagnose.h"

#include <sys/stat.h>

#include <string_view>

#include "host/namespaces_probe.h"

namespace sandy::host {
namespace {

// Printable lines, the last few, without the prefix of who wrote them twice.
std::string last_lines(std::string_view messages) {
  std::string out;
  while (!messages.empty() && messages.back() == '\n') messages.remove_suffix(1);
  for (int lines = 0; lines < 3 && !messages.empty(); ++lines) {
    const auto newline = messages.rfind('\n');
    const auto start = newline == std::string_view::npos ? 0 : newline + 1;
    out = printable(messages.substr(start)) + (out.empty() ? "" : "; ") + out;
    messages = messages.substr(0, newline == std::string_view::npos ? 0 : newline);
  }
  return out;
}

}  // namespace

Error explain_start_failure(const plan::SandboxPlan& plan, const std::string& messages, const Error& symptom) {
  Error error{"the sandbox could not start", last_lines(messages), ""};
  if (error.why.empty()) error.why = symptom.why.empty() ? symptom.what : symptom.what + ": " + symptom.why;
  struct stat st{};
  if (::stat(plan.bwrap.c_str(), &st) == 0 && (st.st_mode & S_ISUID) != 0) {
    error.why += "; " + printable(plan.bwrap) + " is setuid, and a setuid bubblewrap lacks what a sandbox needs";
    error.fix = "sudo chmod u-s " + printable(plan.bwrap);
    return error;
  }
  const UserNamespaceProbe probe = probe_user_namespace();
  if (probe.state != UserNamespaceState::works || probe.proc_masked) {
    error.why += "; " + describe(probe);
    error.fix = remedy(probe);
  } else {
    error.fix = "run `sandy doctor` for what this machine can do, and `sandy plan` for what was tried";
  }
  return error;
}

}  // namespace sandy::host
