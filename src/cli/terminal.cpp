#include "cli/terminal.h"

#include <sys/ioctl.h>

namespace sandy::cli {

TerminalSize terminal_size(int fd) {
  winsize size{};
  if (::ioctl(fd, TIOCGWINSZ, &size) != 0 || size.ws_row == 0 || size.ws_col == 0) return {};
  return {size.ws_row, size.ws_col};
}

}  // namespace sandy::cli
