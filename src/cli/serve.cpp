#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <boost/asio.hpp>
#include <cerrno>

#include "base/unique_fd.h"
#include "cli/verbs.h"
#include "host/children.h"
#include "session/server.h"

namespace sandy::cli {
namespace {

constexpr int kSocket = 3;

// Leaves the caller behind: its process, its session, its directory, and what it has open (a lock would stay locked, a pipe open). `fd` stays, as kSocket.
bool leave_caller(int fd) {
  const pid_t child = ::fork();
  if (child < 0) return false;
  if (child > 0) ::_exit(0);
  ::setsid();
  for (int number = 0; number < 3; ++number) {
    const UniqueFd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
    if (!null || ::dup2(null.get(), number) < 0) return false;
  }
  if (::dup2(fd, kSocket) < 0 || ::close_range(kSocket + 1, ~0U, 0) != 0 || ::fcntl(kSocket, F_SETFD, FD_CLOEXEC) != 0) return false;
  host::prepare_for_children();
  return ::chdir("/") == 0;
}

int serve(int fd, bool keep) {
  int type = 0;
  socklen_t length = sizeof type;
  if (::getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &length) != 0 || type != SOCK_STREAM) {
    print_error({"--fd " + std::to_string(fd), "is no stream socket", "a client program starts `sandy serve`, not a person"});
    return kUsage;
  }
  if (keep && !leave_caller(fd)) {
    print_error({"--keep", errno_text(errno), ""});
    return kCouldNotStart;
  }
  boost::asio::io_context io(1);
  session::Server server(io);
  auto run = keep ? &session::Server::run_kept : &session::Server::run;
  boost::asio::co_spawn(io, (server.*run)(UniqueFd(keep ? kSocket : fd)), boost::asio::detached);
  io.run();
  return 0;
}

}  // namespace

void add_serve(CLI::App& app, ExitStatus& status) {
  auto* verb = app.add_subcommand("serve", "Serve one client process (for programs)")->group("");
  auto fd = std::make_shared<int>(-1);
  auto keep = std::make_shared<bool>(false);
  verb->add_flag("--keep", *keep, "For one sandbox, which outlives that process");
  verb->add_option("--fd", *fd, "Descriptor of a connected Unix stream socket")->required();
  verb->callback([fd, keep, &status] { status.value = serve(*fd, *keep); });
}

}  // namespace sandy::cli
