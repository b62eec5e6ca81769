#include "verify/victim.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

#include "host/children.h"
#include "verify/judge.h"

namespace sandy::verify {
namespace {

constexpr int kPatienceMs = 5000, kSignalMs = 400;

}  // namespace

Victim::Victim(Victim&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)), input_(std::move(other.input_)), output_(std::move(other.output_)), address_(std::move(other.address_)) {}

Victim& Victim::operator=(Victim&& other) noexcept {
  std::swap(pid_, other.pid_);
  std::swap(input_, other.input_);
  std::swap(output_, other.output_);
  std::swap(address_, other.address_);
  return *this;
}

Victim::~Victim() {
  if (pid_ < 0) return;
  ::kill(pid_, SIGKILL);
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {}
  host::forget_child(pid_);
}

Result<Victim> Victim::start(const std::string& program, const std::string& nonce, const std::string& secret) {
  int in[2], out[2];
  if (::pipe2(in, O_CLOEXEC) != 0) return fail("a process outside", errno_text(errno));
  UniqueFd in_read(in[0]), in_write(in[1]);
  if (::pipe2(out, O_CLOEXEC) != 0) return fail("a process outside", errno_text(errno));
  UniqueFd out_read(out[0]), out_write(out[1]);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, in_read.get(), 0);
  posix_spawn_file_actions_adddup2(&actions, out_write.get(), 1);
  std::array<std::string, 4> words{program, nonce, "victim", secret};
  std::array<char*, 5> argv{words[0].data(), words[1].data(), words[2].data(), words[3].data(), nullptr};
  Victim victim;
  const int error = ::posix_spawn(&victim.pid_, program.c_str(), &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) {
    victim.pid_ = -1;
    return fail(printable(program), errno_text(error));
  }
  host::note_child(victim.pid_);
  victim.input_ = std::move(in_write);
  victim.output_ = std::move(out_read);
  out_write.reset();
  std::string line;
  pollfd polled{victim.output_.get(), POLLIN, 0};
  while (!line.ends_with('\n')) {
    char buffer[256];
    if (::poll(&polled, 1, kPatienceMs) <= 0) return fail(printable(program), "said nothing");
    const ssize_t size = ::read(victim.output_.get(), buffer, sizeof buffer);
    if (size <= 0) return fail(printable(program), "ended");
    line.append(buffer, static_cast<std::size_t>(size));
  }
  const auto report = read_report(line, nonce);
  if (report.word != AttemptReport::Word::done) return fail(printable(program), "said something else than where its secret is");
  victim.address_ = report.detail;
  return victim;
}

bool Victim::signalled() {
  pollfd polled{output_.get(), POLLIN, 0};
  char buffer[256];
  if (::poll(&polled, 1, kSignalMs) <= 0) return false;
  return ::read(output_.get(), buffer, sizeof buffer) > 0;
}

}  // namespace sandy::verify
