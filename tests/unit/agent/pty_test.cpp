#include "agent/pty.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/ioctl.h>

#include <cstdlib>

#include "live_processes.h"

namespace sandy::agent {
namespace {

class PtyTest : public LiveTest {
 protected:
  void SetUp() override {
    if (::access("/dev/ptmx", R_OK | W_OK) == 0) return;
    const char* must = std::getenv("SANDY_MUST_WORK");
    if (must != nullptr && std::string_view(must) == "1") FAIL() << "no /dev/ptmx";
    GTEST_SKIP() << "this machine has no /dev/ptmx";
  }
};

winsize size_of(int fd) {
  winsize size{};
  EXPECT_EQ(::ioctl(fd, TIOCGWINSZ, &size), 0);
  return size;
}

TEST_F(PtyTest, HasItsSizeAndCanBeResized) {
  const auto pty = open_pty(24, 80);
  ASSERT_TRUE(pty);
  EXPECT_EQ(size_of(pty->slave.get()).ws_row, 24);
  EXPECT_EQ(size_of(pty->slave.get()).ws_col, 80);
  resize_pty(pty->master.get(), 50, 65'535);
  EXPECT_EQ(size_of(pty->slave.get()).ws_row, 50);
  EXPECT_EQ(size_of(pty->slave.get()).ws_col, 65'535);
  EXPECT_TRUE(::isatty(pty->slave.get()));
  for (const int fd : {pty->master.get(), pty->slave.get()}) EXPECT_NE(::fcntl(fd, F_GETFD) & FD_CLOEXEC, 0);
}

TEST_F(PtyTest, IsNotOurControllingTerminal) {
  // In a session without one, opening a terminal would make it that.
  const pid_t child = ::fork();
  if (child == 0) {
    ::setsid();
    const auto pty = open_pty(1, 1);
    const int fd = ::open("/dev/tty", O_RDWR);
    ::_exit(pty.has_value() && fd < 0 && errno == ENXIO ? 0 : 1);
  }
  int status = 1;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST_F(PtyTest, IsTheControllingTerminalOfACommand) {
  auto pty = open_pty(30, 100);
  ASSERT_TRUE(pty);
  CommandImage image = shell("stty size < /dev/tty; trap 'echo got INT; exit 7' INT; echo ready; while :; do sleep 0.01; done");
  image.out.reset(::fcntl(pty->slave.get(), F_DUPFD_CLOEXEC, 3));
  image.in = std::move(pty->slave);
  image.controlling_tty = true;
  Runner runner(std::move(image));
  std::string text;
  auto read_until = [&](const char* word) {
    return wait_until([&] {
      pollfd polled{pty->master.get(), POLLIN, 0};
      if (::poll(&polled, 1, 50) > 0) {
        char buffer[256];
        const ssize_t n = ::read(pty->master.get(), buffer, sizeof buffer);
        if (n > 0) text.append(buffer, static_cast<std::size_t>(n));
      }
      return text.find(word) != std::string::npos;
    });
  };
  ASSERT_TRUE(read_until("ready")) << text;
  EXPECT_NE(text.find("30 100"), std::string::npos) << text;
  ASSERT_EQ(::write(pty->master.get(), "\x03", 1), 1);  // Ctrl-C goes to the terminal's foreground group
  EXPECT_TRUE(read_until("got INT")) << text;
  ASSERT_TRUE(runner.wait_ended());
  EXPECT_EQ(WEXITSTATUS(runner.supervisor->status()), 7);
}

}  // namespace
}  // namespace sandy::agent
