#include "agent/run_agent.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <boost/asio.hpp>
#include <cstdint>

#include "agent/agent.h"
#include "agent/raw_syscall.h"

namespace {

constexpr int kSocket = 3;

// Descriptors 0, 1 and 2 on /dev/null: bwrap's went to the launcher's error pipe.
bool silence() {
  sandy::UniqueFd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  if (!null) return false;
  for (int fd = 0; fd < 3; ++fd) {
    if (::dup2(null.get(), fd) < 0) return false;
  }
  return true;
}

}  // namespace

int sandy::agent::run_agent() {
  // bubblewrap's end is ours: it is how the sandbox is ended whatever we do. By ourselves, as bubblewrap's --die-with-parent ends also
  // bubblewrap with its parent, which in the midst of a start leaves a child that waits for it for ever.
  if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) return 1;
  // Commands in the sandbox have our user id: they must not trace us or read our memory (PR_SET_DUMPABLE, prctl(2)).
  if (::prctl(PR_SET_DUMPABLE, 0) != 0) return 1;
  int type = 0;
  socklen_t length = sizeof type;
  if (::getsockopt(kSocket, SOL_SOCKET, SO_TYPE, &type, &length) != 0 || type != SOCK_STREAM) return 1;
  ::fcntl(kSocket, F_SETFD, FD_CLOEXEC);
  // Anything else that was open when bwrap started us is not ours.
  if (::close_range(kSocket + 1, ~0U, 0) != 0 || !silence()) return 1;
  sigset_t all;
  sigfillset(&all);
  ::sigprocmask(SIG_SETMASK, &all, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
  ::signal(SIGXFSZ, SIG_IGN);
  // posix_spawn(3) of glibc leaves its own two signals ignored, also in what it starts, and commands would inherit that.
  const std::array<std::uint64_t, 4> plain{};  // the kernel's struct sigaction: SIG_DFL, no flags
  for (const int number : {32, 33}) raw_syscall(SYS_rt_sigaction, number, raw_arg(plain.data()), 0, sizeof(std::uint64_t));
  ::umask(022);

  boost::asio::io_context io(1);
  sandy::agent::Agent agent(io, sandy::UniqueFd(kSocket));
  boost::asio::co_spawn(io, agent.serve(), [&](std::exception_ptr) { io.stop(); });
  io.run();
  // pid 1 ends, and the kernel kills all else in its PID namespace (pid_namespaces(7)). No destructors: worker threads
  // may be in a file operation that lasts.
  ::_exit(0);
}
