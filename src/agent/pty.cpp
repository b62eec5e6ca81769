#include "agent/pty.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>

#include <cerrno>

namespace sandy::agent {

std::expected<Pty, int> open_pty(unsigned short rows, unsigned short cols) {
  Pty pty;
  pty.master.reset(::open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC));
  if (!pty.master) return std::unexpected(errno);
  const int unlock = 0;
  if (::ioctl(pty.master.get(), TIOCSPTLCK, &unlock) != 0) return std::unexpected(errno);
  // TIOCGPTPEER (ioctl_tty(2)) opens the slave without a path, so no /dev/pts entry has to be trusted.
  pty.slave.reset(::ioctl(pty.master.get(), TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC));
  if (!pty.slave) return std::unexpected(errno);
  resize_pty(pty.master.get(), rows, cols);
  return pty;
}

void resize_pty(int master, unsigned short rows, unsigned short cols) {
  const winsize size{rows, cols, 0, 0};
  ::ioctl(master, TIOCSWINSZ, &size);
}

}  // namespace sandy::agent
