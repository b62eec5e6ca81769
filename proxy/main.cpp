// sandy-proxy: the only way out of sandboxes with a network. Started by `sandy`, and ends when that closes the connection.
//
//   sandy-proxy --control FD
//   sandy-proxy --version
//
// It runs in the host's network namespace. The sockets on which it accepts were made in the sandboxes' namespaces (sandy-launch --network), and
// come over FD.
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <boost/asio.hpp>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>
#include <new>
#include <string>

#include "base/unique_fd.h"
#include "proxy/confine.h"
#include "proxy/control.h"

namespace {

int run(int control) {
  boost::asio::io_context io(1);
  // What needs files comes first.
  sandy::proxy::Resolver resolver(io.get_executor(), sandy::proxy::settings_text(sandy::UniqueFd(::open("/etc/hosts", O_RDONLY | O_CLOEXEC))));
  const std::size_t descriptors = sandy::proxy::descriptor_limit();
  if (const auto confined = sandy::proxy::confine(); !confined) {
    std::fprintf(stderr, "%s\n", confined.error().text().c_str());
    return 1;
  }
  sandy::proxy::Control connection(io.get_executor(), sandy::UniqueFd(control), resolver, descriptors);
  boost::asio::co_spawn(io, connection.run(), [&io](std::exception_ptr) { io.stop(); });
  while (true) {
    try {
      io.run();
      break;
    } catch (const std::bad_alloc&) {
      // Of one connection: the others go on.
      std::fputs("sandy-proxy: out of memory\n", stderr);
    } catch (const std::exception& exception) {
      std::fprintf(stderr, "sandy-proxy: %s\n", exception.what());
      ::_exit(1);
    }
  }
  // Connections that are open are the kernel's to close: their coroutines hold on to each other.
  ::_exit(0);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && std::strcmp(argv[1], "--version") == 0) {
    std::puts("sandy-proxy " SANDY_VERSION);
    return 0;
  }
  int control = -1;
  const char* const text = argc == 3 && std::strcmp(argv[1], "--control") == 0 ? argv[2] : "";
  const auto [end, error] = std::from_chars(text, text + std::strlen(text), control);
  if (error != std::errc() || *end != '\0' || control < 3 || ::fcntl(control, F_SETFD, FD_CLOEXEC) != 0) {
    std::fputs("usage: sandy-proxy --control FD\n", stderr);
    return 2;
  }
  // splice(2) has no MSG_NOSIGNAL.
  std::signal(SIGPIPE, SIG_IGN);
  // Descriptors that whoever started `sandy` left open are none of ours.
  if ((control != 3 && ::dup3(control, 3, O_CLOEXEC) != 3) || ::syscall(SYS_close_range, 4U, ~0U, 0U) != 0) {
    std::perror("sandy-proxy: descriptors");
    return 1;
  }
  try {
    return run(3);
  } catch (const std::exception& exception) {
    std::fprintf(stderr, "sandy-proxy: %s\n", exception.what());
    return 1;
  }
}
