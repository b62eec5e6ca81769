#include "host/run_program.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/unique_fd.h"

namespace sandy::host {
namespace {

constexpr std::size_t kMaxOutput = 262'144;

}  // namespace

Result<ProgramResult> run_program(const std::vector<std::string>& argv, std::chrono::milliseconds limit, ProgramEnvironment environment) {
  int out[2], err[2];
  if (::pipe2(out, O_CLOEXEC) != 0) return fail(printable(argv[0]), errno_text(errno));
  UniqueFd out_read(out[0]), out_write(out[1]);
  if (::pipe2(err, O_CLOEXEC) != 0) return fail(printable(argv[0]), errno_text(errno));
  UniqueFd err_read(err[0]), err_write(err[1]);

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, out_write.get(), 1);
  posix_spawn_file_actions_adddup2(&actions, err_write.get(), 2);
  std::vector<char*> words;
  for (const auto& word : argv) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  std::string locale = "LC_ALL=C";
  std::array<char*, 2> plain{locale.data(), nullptr};
  pid_t pid = -1;
  const int error = ::posix_spawn(&pid, argv[0].c_str(), &actions, nullptr, words.data(), environment == ProgramEnvironment::inherited ? environ : plain.data());
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return fail(printable(argv[0]), errno_text(error));
  out_write.reset();
  err_write.reset();

  ProgramResult result;
  const auto deadline = std::chrono::steady_clock::now() + limit;
  while (out_read || err_read) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    std::array<pollfd, 2> polled{pollfd{out_read.get(), POLLIN, 0}, pollfd{err_read.get(), POLLIN, 0}};
    if (left.count() <= 0 || ::poll(polled.data(), polled.size(), static_cast<int>(left.count())) == 0) {
      result.timed_out = true;
      break;
    }
    for (std::size_t i = 0; i < polled.size(); ++i) {
      if (polled[i].revents == 0) continue;
      std::array<char, 4096> buffer;
      const ssize_t n = ::read(polled[i].fd, buffer.data(), buffer.size());
      std::string& text = i == 0 ? result.out : result.err;
      if (n > 0) text.append(buffer.data(), std::min(static_cast<std::size_t>(n), kMaxOutput - text.size()));
      if (n == 0 || (n < 0 && errno != EINTR)) (i == 0 ? out_read : err_read).reset();
    }
  }
  // Its output may end before it does.
  while (!result.timed_out) {
    const pid_t ended = ::waitpid(pid, &result.status, WNOHANG);
    if (ended == pid || (ended < 0 && errno != EINTR)) return result;
    if (std::chrono::steady_clock::now() >= deadline) result.timed_out = true;
    ::poll(nullptr, 0, 1);
  }
  ::kill(pid, SIGKILL);
  while (::waitpid(pid, &result.status, 0) < 0 && errno == EINTR) {}
  return result;
}

}  // namespace sandy::host
