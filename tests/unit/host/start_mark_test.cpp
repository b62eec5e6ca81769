#include "host/start_mark.h"

#include <gtest/gtest.h>
#include <sys/file.h>

#include <cerrno>

#include "test_directory.h"

namespace sandy::host {
namespace {

class StartMarkTest : public ::testing::Test {
 protected:
  StartMarkTest() : environment_{{"XDG_STATE_HOME", directory.at("state")}}, state(std::move(*StateDirectory::open())) {}
  bool exists(const std::string& name) const { return directory.exists("state/sandy/" + name); }

  TestDirectory directory;

 private:
  WithEnvironment environment_;

 protected:
  StateDirectory state;
};

TEST_F(StartMarkTest, IsThereUntilItIsRemoved) {
  auto mark = StartMark::make(state, "1");
  ASSERT_TRUE(mark.has_value());
  EXPECT_TRUE(exists("starting-1"));
  StartMark::sweep(state);  // somebody else's start
  EXPECT_TRUE(exists("starting-1"));
  mark->remove();
  EXPECT_FALSE(exists("starting-1"));
  mark->remove();
}

TEST_F(StartMarkTest, EndsWithItsOwner) {
  {
    const auto mark = StartMark::make(state, "1");
    EXPECT_TRUE(exists("starting-1"));
  }
  EXPECT_FALSE(exists("starting-1"));
}

TEST_F(StartMarkTest, LeftOverOnesAreSwept) {
  directory.make("state/sandy/starting-dead", "");
  directory.make("state/sandy/other-dead", "");
  StartMark::sweep(state);
  EXPECT_FALSE(exists("starting-dead"));
  EXPECT_TRUE(exists("other-dead"));
}

// A bubblewrap that would run an agent, and that no `sandy` started: a shell of that command line.
TEST_F(StartMarkTest, ALeftOverMarkEndsWaitingBubblewraps) {
  const auto start = [] {
    const pid_t child = ::fork();
    if (child == 0) {
      ::execl("/bin/sh", "sh", "-c", "read x", "--args", "4", "--", "/run/sandy-agent", nullptr);
      ::_exit(1);
    }
    return child;
  };
  int held[2];
  ASSERT_EQ(::pipe(held), 0);
  const int input = ::dup(0);
  ASSERT_GE(::dup2(held[0], 0), 0);
  const pid_t waiting = start();
  ::dup2(input, 0);
  ::close(input);
  const std::string command_line = "/proc/" + std::to_string(waiting) + "/cmdline";
  while (content_of(command_line).find("sandy-agent") == std::string::npos) ::usleep(1000);
  StartMark::sweep(state);
  EXPECT_EQ(::waitpid(waiting, nullptr, WNOHANG), 0);  // no mark: no reason
  directory.make("state/sandy/starting-dead", "");
  StartMark::sweep(state);
  int status = 0;
  EXPECT_EQ(::waitpid(waiting, &status, 0), waiting);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
  ::close(held[0]);
  ::close(held[1]);
}

}  // namespace
}  // namespace sandy::host
