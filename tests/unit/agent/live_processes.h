// What the live tests of processes share: this process takes in its orphans, and can say which descendants it has.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "agent/process_tree.h"
#include "agent/supervisor.h"

namespace sandy::agent {

inline bool wait_until(const std::function<bool()>& condition, std::chrono::milliseconds limit = std::chrono::seconds(20)) {
  const auto end = std::chrono::steady_clock::now() + limit;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return true;
}

inline std::vector<pid_t> descendants_of(pid_t root) {
  const auto all = list_processes();
  std::vector<pid_t> out, todo{root};
  while (!todo.empty()) {
    const pid_t parent = todo.back();
    todo.pop_back();
    for (const auto& entry : all) {
      if (entry.parent != parent) continue;
      out.push_back(entry.pid);
      todo.push_back(entry.pid);
    }
  }
  return out;
}

class LiveTest : public ::testing::Test {
 protected:
  LiveTest() { ::prctl(PR_SET_CHILD_SUBREAPER, 1); }
  ~LiveTest() override {
    kill_children_except({});
    while (::waitpid(-1, nullptr, __WALL) > 0) {}
  }
};

// A command that is started as the agent does it, and what came of it.
class Runner {
 public:
  explicit Runner(CommandImage image) : wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    if (!image.in) image.in.reset(::open("/dev/null", O_RDWR | O_CLOEXEC));
    if (!image.out) {
      int ends[2];
      if (::pipe2(ends, O_CLOEXEC) != 0) std::abort();
      out_.reset(ends[0]);
      image.out.reset(ends[1]);
    }
    if (!image.err) image.err.reset(::fcntl(image.out.get(), F_DUPFD_CLOEXEC, 3));
    if (image.cwd.empty()) image.cwd = "/";
    supervisor = Supervisor::start(std::move(image), wake_.get(), error);
    if (supervisor != nullptr) pid = supervisor->pid();
  }
  ~Runner() {
    if (reaped_ || pid <= 0) return;
    kill_descendants(pid);
    wait_gone();
  }

  // For the command's own process.
  bool wait_ended() {
    return wait_until([&] {
      pollfd polled{wake_.get(), POLLIN, 0};
      ::poll(&polled, 1, 50);
      return supervisor->ended();
    });
  }
  // For the supervisor: all of its descendants are gone then.
  bool wait_gone() {
    reaped_ = reaped_ || wait_until([&] { return ::waitpid(pid, &supervisor_status, __WALL | WNOHANG) == pid; });
    return reaped_;
  }
  // To the end of all its processes. The supervisor's image holds the pipe's other end, so it goes first.
  std::string finish() {
    EXPECT_TRUE(wait_ended() && wait_gone()) << "it did not end";
    status = supervisor->status();
    exec_errno = supervisor->exec_errno();
    chdir_failed = supervisor->chdir_failed();
    usage = supervisor->usage();
    supervisor.reset();
    std::string text;
    char buffer[4096];
    for (ssize_t n; out_ && (n = ::read(out_.get(), buffer, sizeof buffer)) > 0;) text.append(buffer, static_cast<std::size_t>(n));
    return text;
  }
  int exit_code() const { return WIFEXITED(status) ? WEXITSTATUS(status) : -1; }

  std::unique_ptr<Supervisor> supervisor;
  pid_t pid = -1;
  int error = 0, supervisor_status = 0;
  // After finish():
  int status = 0, exec_errno = 0;
  bool chdir_failed = false;
  rusage usage{};

 private:
  UniqueFd wake_, out_;
  bool reaped_ = false;
};

inline CommandImage shell(const std::string& command) {
  CommandImage image;
  image.candidates = {"/bin/sh"};
  image.argv = {"/bin/sh", "-c", command};
  image.env = {"PATH=/usr/bin:/bin", "LC_ALL=C"};
  image.cwd = "/";
  return image;
}

}  // namespace sandy::agent
