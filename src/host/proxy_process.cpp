#include "host/proxy_process.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

#include "host/programs.h"

namespace sandy::host {

Result<ProxyProcess> start_proxy() {
  constexpr int kControl = 3, kFirstFree = 4;
  auto program = own_program("sandy-proxy");
  if (!program) return std::unexpected(program.error());
  int sockets[2], pipe[2];
  ProxyProcess out;
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) != 0) return fail("socketpair", errno_text(errno));
  out.control.reset(sockets[0]);
  const UniqueFd low(sockets[1]);
  if (::pipe2(pipe, O_CLOEXEC) != 0) return fail("pipe", errno_text(errno));
  out.messages.reset(pipe[0]);
  const UniqueFd low_messages(pipe[1]);
  // Out of the way of the numbers that the child gets them under.
  const UniqueFd control(::fcntl(low.get(), F_DUPFD_CLOEXEC, kFirstFree)), messages(::fcntl(low_messages.get(), F_DUPFD_CLOEXEC, kFirstFree));
  if (!control || !messages) return fail("descriptors", errno_text(errno), "raise the limit on open files (ulimit -n)");
  Spawn spawn;
  spawn.open_null(0);
  spawn.open_null(1);
  spawn.dup(messages.get(), 2);
  spawn.dup(control.get(), kControl);
  auto child = spawn.run(*program, {"sandy-proxy", "--control", std::to_string(kControl)});
  if (!child) return std::unexpected(child.error());
  out.child = std::move(*child);
  return out;
}

}  // namespace sandy::host
