#include "host/spawn.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "host/children.h"

namespace sandy::host {

Spawn::Spawn() {
  posix_spawn_file_actions_init(&actions_);
  posix_spawnattr_init(&attributes_);
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&attributes_, &none);
  posix_spawnattr_setsigdefault(&attributes_, &all);
  posix_spawnattr_setpgroup(&attributes_, 0);
  posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
}

Spawn::~Spawn() {
  posix_spawn_file_actions_destroy(&actions_);
  posix_spawnattr_destroy(&attributes_);
}

void Spawn::open_null(int target) { posix_spawn_file_actions_addopen(&actions_, target, "/dev/null", O_RDWR, 0); }

void Spawn::dup(int from, int target) {
  posix_spawn_file_actions_adddup2(&actions_, from, target);
  highest_ = std::max(highest_, target);
}

Result<Child> Spawn::run(const std::string& program, const std::vector<std::string>& argv) {
  std::vector<char*> words;
  for (const auto& word : argv) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  std::array<char*, 1> environment{nullptr};
  Child out;
  posix_spawn_file_actions_addclosefrom_np(&actions_, highest_ + 1);
  if (const int error = ::posix_spawn(&out.pid, program.c_str(), &actions_, &attributes_, words.data(), environment.data()); error != 0) {
    return fail(printable(program), errno_text(error));
  }
  note_child(out.pid);
  out.pidfd.reset(static_cast<int>(::syscall(SYS_pidfd_open, out.pid, 0)));
  if (!out.pidfd) {
    const int error = errno;
    ::kill(out.pid, SIGKILL);
    forget_child(out.pid);
    return fail("pidfd_open", errno_text(error), "Sandy needs Linux 5.3 or newer");
  }
  return out;
}

}  // namespace sandy::host
