// The caller's terminal: its modes while a command has it, and its size.
#pragma once

#include <termios.h>

#include <utility>

namespace sandy::cli {

// Descriptor `fd`'s terminal has other modes until it is destroyed: cfmakeraw(3), say.
class ChangedTerminal {
 public:
  ChangedTerminal(int fd, void (*change)(termios*)) : fd_(fd) {
    active_ = ::tcgetattr(fd_, &saved_) == 0;
    if (!active_) return;
    termios changed = saved_;
    change(&changed);
    ::tcsetattr(fd_, TCSADRAIN, &changed);
  }
  ~ChangedTerminal() { restore(); }
  ChangedTerminal(const ChangedTerminal&) = delete;
  ChangedTerminal& operator=(const ChangedTerminal&) = delete;

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
