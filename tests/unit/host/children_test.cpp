#include "host/children.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

namespace sandy::host {
namespace {

using namespace std::chrono_literals;

bool runs(pid_t pid) { return ::kill(pid, 0) == 0; }

// In a process of its own: the test's own children are not to be taken for orphans.
int in_child(int (*body)()) {
  const pid_t child = ::fork();
  if (child == 0) {
    prepare_for_children();
    ::_exit(body());
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 100;
}

TEST(Children, OrphansAreEndedAndReaped) {
  EXPECT_EQ(in_child([] {
    int ends[2];
    if (::pipe(ends) != 0) return 1;
    const pid_t middle = ::fork();
    if (middle == 0) {
      const pid_t orphan = ::fork();
      if (orphan == 0) {
        ::pause();
        ::_exit(0);
      }
      (void)!::write(ends[1], &orphan, sizeof orphan);
      ::_exit(0);
    }
    pid_t orphan = 0;
    if (::read(ends[0], &orphan, sizeof orphan) != sizeof orphan) return 2;
    ::waitpid(middle, nullptr, 0);
    if (!runs(orphan)) return 3;
    end_orphans(5s);
    return runs(orphan) || errno != ESRCH ? 4 : 0;
  }), 0);
}

TEST(Children, NotedOnesAreLeftAlone) {
  EXPECT_EQ(in_child([] {
    const pid_t noted = ::fork();
    if (noted == 0) {
      ::pause();
      ::_exit(0);
    }
    note_child(noted);
    end_orphans(0s);
    if (!runs(noted) || ::waitpid(noted, nullptr, WNOHANG) != 0) return 1;
    forget_child(noted);
    end_orphans(5s);
    return runs(noted) ? 2 : 0;
  }), 0);
}

TEST(Children, ZombiesAreReaped) {
  EXPECT_EQ(in_child([] {
    const pid_t dead = ::fork();
    if (dead == 0) ::_exit(0);
    siginfo_t info{};
    if (::waitid(P_PID, static_cast<id_t>(dead), &info, WEXITED | WNOWAIT) != 0) return 1;
    end_orphans(5s);
    return ::waitpid(dead, nullptr, WNOHANG) == -1 && errno == ECHILD ? 0 : 2;
  }), 0);
}

}  // namespace
}  // namespace sandy::host
