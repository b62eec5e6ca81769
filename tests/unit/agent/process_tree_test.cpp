#include "agent/process_tree.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "live_processes.h"

namespace sandy::agent {
namespace {

class ProcessTree : public LiveTest {};

bool is_listed(pid_t pid, pid_t parent) {
  const auto all = list_processes();
  return std::ranges::any_of(all, [&](const auto& entry) { return entry.pid == pid && entry.parent == parent; });
}

TEST_F(ProcessTree, ListsThisProcessWithItsParent) { EXPECT_TRUE(is_listed(::getpid(), ::getppid())); }

// A program's name may look like the end of the field that it stands in.
TEST_F(ProcessTree, NamesWithParenthesesAndSpaces) {
  int ready[2];
  ASSERT_EQ(::pipe2(ready, O_CLOEXEC), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::prctl(PR_SET_NAME, ") S 1 (x\n) ");
    (void)!::write(ready[1], "x", 1);
    ::pause();
    ::_exit(0);
  }
  char byte = 0;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  EXPECT_TRUE(is_listed(child, ::getpid()));
  ::close(ready[0]);
  ::close(ready[1]);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_FALSE(is_listed(child, ::getpid()));
}

// Sessions of their own, orphans of orphans, and a program that ignores what can be ignored.
constexpr char kHardToFind[] =
    "trap '' TERM HUP INT\n"
    "(setsid sh -c '(setsid sleep 1000 &) ; sleep 1000' &)\n"
    "(sh -c 'sh -c \"sleep 1000 & exec sleep 1000\" &' &)\n"
    "setsid setsid sleep 1000 &\n"
    "wait; sleep 1000";

TEST_F(ProcessTree, KillsEveryDescendantAndNotTheRoot) {
  Runner runner(shell(kHardToFind));
  ASSERT_TRUE(wait_until([&] { return descendants_of(runner.pid).size() >= 6; }));
  EXPECT_TRUE(kill_descendants(runner.pid));
  EXPECT_TRUE(runner.wait_gone());
  EXPECT_TRUE(WIFEXITED(runner.supervisor_status)) << "the root itself was killed";
  EXPECT_TRUE(descendants_of(::getpid()).empty());
}

TEST_F(ProcessTree, StoppedProcessesToo) {
  Runner runner(shell("(setsid sh -c 'kill -STOP $$' &); kill -STOP $$"));
  ASSERT_TRUE(wait_until([&] { return descendants_of(runner.pid).size() >= 2; }));
  EXPECT_TRUE(kill_descendants(runner.pid));
  EXPECT_TRUE(runner.wait_gone());
}

TEST_F(ProcessTree, FasterForksThanProcCanBeRead) {
  // Each round leaves an orphan and goes on in a child: there is always a new process.
  Runner runner(shell("f() { sleep 1000 & (setsid sh -c 'sleep 1000' &); }; i=0; while [ $i -lt 400 ]; do f; i=$((i+1)); done; wait"));
  ASSERT_TRUE(wait_until([&] { return descendants_of(runner.pid).size() >= 20; }));
  EXPECT_TRUE(kill_descendants(runner.pid));
  EXPECT_TRUE(runner.wait_gone());
  EXPECT_TRUE(descendants_of(::getpid()).empty());
}

TEST_F(ProcessTree, NothingToKill) {
  Runner runner(shell("exit 0"));
  ASSERT_TRUE(runner.wait_ended());
  EXPECT_TRUE(kill_descendants(runner.pid));
}

TEST_F(ProcessTree, ChildrenThatAreToBeKeptAreKeptWithTheirDescendants) {
  Runner kept(shell("sleep 1000 & wait")), other(shell(kHardToFind));
  ASSERT_TRUE(wait_until([&] { return descendants_of(kept.pid).size() >= 2 && descendants_of(other.pid).size() >= 6; }));
  const auto before = descendants_of(kept.pid);
  kill_children_except({kept.pid});
  EXPECT_TRUE(other.wait_gone());
  EXPECT_EQ(descendants_of(kept.pid), before);
  EXPECT_FALSE(kept.supervisor->ended());
}

}  // namespace
}  // namespace sandy::agent
