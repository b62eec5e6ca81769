#include "host/children.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <charconv>
#include <set>
#include <string>

#include "host/proc_text.h"

namespace sandy::host {
namespace {

bool some_are_left = false;

std::set<pid_t>& noted() {
  static std::set<pid_t> pids;
  return pids;
}

std::set<pid_t> strangers() {
  std::set<pid_t> out;
  const std::string path = "/proc/self/task/" + std::to_string(::getpid()) + "/children";  // proc_tid_children(5)
  const std::string text = read_text(path.c_str());
  const char* const end = text.data() + text.size();
  for (const char* at = text.data(); at < end;) {
    pid_t pid = 0;
    const auto [after, error] = std::from_chars(at, end, pid);
    if (error == std::errc() && !noted().contains(pid)) out.insert(pid);
    at = after + 1;
  }
  return out;
}

}  // namespace

void prepare_for_children() {
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  ::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
}

void note_child(pid_t pid) { noted().insert(pid); }

void forget_child(pid_t pid) { noted().erase(pid); }

void end_orphans(std::chrono::milliseconds patience) {
  const auto until = std::chrono::steady_clock::now() + patience;
  // One that dies leaves us its own children.
  for (auto pids = strangers(); !pids.empty(); pids = strangers()) {
    bool reaped = false;
    for (const pid_t pid : pids) {
      ::kill(pid, SIGKILL);
      reaped = ::waitpid(pid, nullptr, WNOHANG) == pid || reaped;
    }
    if (reaped) continue;
    if (std::chrono::steady_clock::now() >= until) {
      some_are_left = true;
      return;
    }
    const timespec pause{.tv_sec = 0, .tv_nsec = 1'000'000};
    ::nanosleep(&pause, nullptr);
  }
}

void end_last_orphans(std::chrono::milliseconds patience) {
  if (some_are_left) end_orphans(patience);
}

}  // namespace sandy::host
