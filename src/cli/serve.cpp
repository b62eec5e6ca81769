#include <sys/socket.h>

#include <boost/asio.hpp>
#include <cerrno>

#include "cli/verbs.h"
#include "session/server.h"

namespace sandy::cli {
namespace {

int serve(int fd) {
  int type = 0;
  socklen_t length = sizeof type;
  if (::getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &length) != 0 || type != SOCK_STREAM) {
    print_error({"--fd " + std::to_string(fd), "is no stream socket", "a client program starts `sandy serve`, not a person"});
    return kUsage;
  }
  boost::asio::io_context io(1);
  session::Server server(io);
  boost::asio::co_spawn(io, server.run(UniqueFd(fd)), boost::asio::detached);
  io.run();
  return 0;
}

}  // namespace

void add_serve(CLI::App& app, ExitStatus& status) {
  auto* verb = app.add_subcommand("serve", "Serve one client process (for programs)")->group("");
  auto fd = std::make_shared<int>(-1);
  verb->add_option("--fd", *fd, "Descriptor of a connected Unix stream socket")->required();
  verb->callback([fd, &status] { status.value = serve(*fd); });
}

}  // namespace sandy::cli
