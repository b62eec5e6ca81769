// The caller's terminal: raw mode, and its size.
#pragma once

#include <termios.h>

#include <utility>

namespace sandy::cli {

// Puts descriptor `fd`'s terminal into raw mode (cfmakeraw(3)) until it is destroyed.
class RawTerminal {
 public:
  explicit RawTerminal(int fd) : fd_(fd) {
    active_ = ::tcgetattr(fd_, &saved_) == 0;
    if (!active_) return;
    termios raw = saved_;
    ::cfmakeraw(&raw);
    ::tcsetattr(fd_, TCSADRAIN, &raw);
  }
  ~RawTerminal() { restore(); }
  RawTerminal(const RawTerminal&) = delete;
  RawTerminal& operator=(const RawTerminal&) = delete;

  void restore() {
    if (std::exchange(active_, false)) ::tcsetattr(fd_, TCSADRAIN, &saved_);
  }

 private:
  int fd_;
  bool active_ = false;
  termios saved_{};
};

struct TerminalSize {
  unsigned short rows = 24, cols = 80;
};
TerminalSize terminal_size(int fd);

}  // namespace sandy::cli
