#include "verify/host_processes.h"

#include <dirent.h>
#include <signal.h>
#include <sys/wait.h>

#include <cstdlib>
#include <string_view>
#include <thread>

#include "host/proc_text.h"

namespace sandy::verify {

std::vector<pid_t> processes_with(const std::string& argument) {
  std::vector<pid_t> out;
  DIR* const proc = ::opendir("/proc");
  if (proc == nullptr) return out;
  while (const dirent* entry = ::readdir(proc)) {
    const auto pid = static_cast<pid_t>(std::atoi(entry->d_name));
    if (pid <= 0) continue;
    // Each argument ends with a NUL.
    const std::string words = std::string(1, '\0') + host::read_text(("/proc/" + std::string(entry->d_name) + "/cmdline").c_str());
    if (words.find('\0' + argument + '\0') != std::string::npos) out.push_back(pid);
  }
  ::closedir(proc);
  return out;
}

bool all_gone(const std::string& argument, std::chrono::milliseconds patience) {
  const auto end = std::chrono::steady_clock::now() + patience;
  while (!processes_with(argument).empty()) {
    if (std::chrono::steady_clock::now() >= end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return true;
}

void end_processes_with(const std::string& argument) {
  for (int round = 0; round < 100; ++round) {
    const auto found = processes_with(argument);
    if (found.empty()) return;
    for (const pid_t pid : found) {
      ::kill(pid, SIGKILL);
      ::waitpid(pid, nullptr, WNOHANG);  // orphans below us are our children (host/children.h)
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

}  // namespace sandy::verify
