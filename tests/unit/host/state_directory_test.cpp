#include "host/state_directory.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/file.h>

#include "test_directory.h"

namespace sandy::host {
namespace {

class StateDirectoryTest : public ::testing::Test {
 protected:
  StateDirectoryTest() : environment_{{"XDG_STATE_HOME", directory.at("state")}, {"HOME", directory.at("home")}} {}

  StateDirectory open() {
    auto out = StateDirectory::open();
    if (!out) throw std::runtime_error(out.error().text());
    return std::move(*out);
  }
  // As left by a process that was killed: nobody holds its lock.
  void abandon(const StateDirectory& state, const std::string& id) {
    const pid_t child = ::fork();
    if (child == 0) {
      auto made = SandboxDirectory::make(state, id, std::nullopt);
      if (made && made->directory("root")) ::kill(::getpid(), SIGKILL);
      ::_exit(1);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    ASSERT_TRUE(WIFSIGNALED(status));
    ASSERT_TRUE(directory.exists("state/sandy/sandbox-" + id + "/root"));
  }
  bool there(const std::string& id) const { return directory.exists("state/sandy/sandbox-" + id); }
  static mode_t mode(const std::string& path) {
    struct stat st{};
    return ::stat(path.c_str(), &st) == 0 ? st.st_mode & 07777 : 0;
  }

  TestDirectory directory;

 private:
  WithEnvironment environment_;
};

TEST_F(StateDirectoryTest, IsMadeForUsAlone) {
  const auto state = open();
  EXPECT_EQ(state.path(), directory.at("state/sandy"));
  EXPECT_EQ(StateDirectory::likely_path(), state.path());
  EXPECT_EQ(mode(state.path()), 0700U);
  EXPECT_NE(::fcntl(state.fd(), F_GETFD) & FD_CLOEXEC, 0);
  EXPECT_EQ(open().path(), state.path()) << "a second time";
}

TEST_F(StateDirectoryTest, IsShutWhenOthersMayEnter) {
  directory.make_directory("state/sandy", 0777);
  EXPECT_EQ(mode(open().path()), 0700U);
}

TEST_F(StateDirectoryTest, TheNextPlaceWhereThereIsAFileOrALink) {
  directory.make_directory("elsewhere");
  directory.make_directory("state");
  directory.link("state/sandy", directory.at("elsewhere"));
  EXPECT_EQ(open().path(), directory.at("home/.local/state/sandy"));
  EXPECT_TRUE(std::filesystem::is_empty(directory.at("elsewhere")));
}

TEST_F(StateDirectoryTest, AnotherUsersDirectoryIsNotOurs) {
  if (::geteuid() != 0) {
    // Only root can make one that is not ours; the directories that are there on every machine serve otherwise.
    const WithEnvironment environment{{"XDG_STATE_HOME", "/usr"}, {"HOME", directory.at("home")}};
    EXPECT_EQ(open().path(), directory.at("home/.local/state/sandy"));
    return;
  }
  directory.make_directory("state/sandy", 0777);
  ASSERT_EQ(::chown(directory.at("state/sandy").c_str(), 65534, 65534), 0);
  EXPECT_EQ(open().path(), directory.at("home/.local/state/sandy"));
}

TEST_F(StateDirectoryTest, ASandboxDirectoryGoesWithItsObject) {
  const auto state = open();
  {
    auto sandbox = SandboxDirectory::make(state, "one", std::nullopt);
    ASSERT_TRUE(sandbox) << sandbox.error().text();
    EXPECT_TRUE(std::filesystem::is_directory(directory.at("state/sandy/sandbox-one")));
    const auto root = sandbox->directory("root");
    ASSERT_TRUE(root);
    EXPECT_TRUE(sandbox->directory("root")) << "again";
    directory.make("state/sandy/sandbox-one/root/workspace/deep/file", "x");
    EXPECT_FALSE(SandboxDirectory::make(state, "one", std::nullopt)) << "an id is used once";
  }
  EXPECT_FALSE(there("one"));
}

TEST_F(StateDirectoryTest, AMovedObjectOwnsIt) {
  const auto state = open();
  auto sandbox = SandboxDirectory::make(state, "one", std::nullopt);
  ASSERT_TRUE(sandbox);
  {
    const SandboxDirectory moved(std::move(*sandbox));
    EXPECT_TRUE(there("one"));
  }
  EXPECT_FALSE(there("one"));
}

TEST_F(StateDirectoryTest, SweepTakesWhatNobodyHolds) {
  auto state = open();
  auto alive = SandboxDirectory::make(state, "alive", std::nullopt);
  ASSERT_TRUE(alive);
  abandon(state, "dead1");
  abandon(state, "dead2");
  directory.make("state/sandy/other/file", "x");
  directory.make("state/sandy/etc-0123/file", "x");
  state.sweep();
  EXPECT_TRUE(there("alive"));
  EXPECT_FALSE(there("dead1"));
  EXPECT_FALSE(there("dead2"));
  EXPECT_TRUE(directory.exists("state/sandy/other/file"));
  EXPECT_TRUE(directory.exists("state/sandy/etc-0123/file"));
}

TEST_F(StateDirectoryTest, SweepLeavesOneThatIsJustBeingMade) {
  auto state = open();
  directory.make_directory("state/sandy/sandbox-new");  // made, and not yet locked
  state.sweep();
  EXPECT_TRUE(there("new"));
  const timespec old[2] = {{::time(nullptr) - 60, 0}, {::time(nullptr) - 60, 0}};
  ASSERT_EQ(::utimensat(AT_FDCWD, directory.at("state/sandy/sandbox-new").c_str(), old, 0), 0);
  state.sweep();
  EXPECT_FALSE(there("new")) << "its maker died between the two steps";
}

TEST_F(StateDirectoryTest, SweepIsNotLedAway) {
  auto state = open();
  directory.make("outside/file", "x");
  directory.link("state/sandy/sandbox-link", directory.at("outside"));
  state.sweep();
  EXPECT_TRUE(directory.exists("outside/file"));
}

TEST_F(StateDirectoryTest, WhatIsKeptStaysUntilItIsRemoved) {
  auto state = open();
  {
    auto sandbox = SandboxDirectory::make(state, "one", std::nullopt);
    ASSERT_TRUE(sandbox);
    ASSERT_TRUE(sandbox->directory("root"));
    ASSERT_TRUE(sandbox->keep("first"));
    ASSERT_TRUE(sandbox->keep("record"));
    const auto kept = state.kept();
    ASSERT_EQ(kept.size(), 1U);
    EXPECT_EQ(kept[0].id, "one");
    EXPECT_EQ(kept[0].record, "record");
    EXPECT_TRUE(kept[0].running);
    EXPECT_FALSE(state.remove_kept("one")) << "it runs";
    EXPECT_FALSE(SandboxDirectory::adopt(state, "one", std::nullopt)) << "it runs";
  }
  state.sweep();
  ASSERT_EQ(state.kept().size(), 1U);
  EXPECT_FALSE(state.kept()[0].running);
  {
    auto again = SandboxDirectory::adopt(state, "one", std::nullopt);
    ASSERT_TRUE(again) << again.error().text();
    EXPECT_TRUE(state.kept()[0].running);
  }
  ASSERT_TRUE(state.remove_kept("one"));
  EXPECT_FALSE(there("one"));
  EXPECT_TRUE(state.kept().empty());
  EXPECT_FALSE(state.remove_kept("one"));
  EXPECT_FALSE(SandboxDirectory::adopt(state, "one", std::nullopt));
}

TEST_F(StateDirectoryTest, ARecordThatCanNotBeReadIsThere) {
  const auto state = open();
  { ASSERT_TRUE(SandboxDirectory::make(state, "one", std::nullopt)->keep("record")); }
  ASSERT_EQ(::truncate(directory.at("state/sandy/sandbox-one/kept").c_str(), 5 << 20), 0);
  ASSERT_EQ(state.kept().size(), 1U);
  EXPECT_EQ(state.kept()[0].record, "");
  EXPECT_TRUE(state.remove_kept("one"));
}

TEST_F(StateDirectoryTest, WhatIsDiscardedGoes) {
  const auto state = open();
  {
    auto sandbox = SandboxDirectory::make(state, "one", std::nullopt);
    ASSERT_TRUE(sandbox->keep("record"));
    sandbox->discard();
  }
  EXPECT_FALSE(there("one"));
}

TEST_F(StateDirectoryTest, OneThatWasNeverKeptIsNotAdopted) {
  const auto state = open();
  abandon(state, "dead");
  EXPECT_FALSE(SandboxDirectory::adopt(state, "dead", std::nullopt));
  EXPECT_TRUE(state.kept().empty());
}

TEST_F(StateDirectoryTest, OnlyTheWorkspaceIsLeftAndNoLinkInItsPlace) {
  const auto state = open();
  directory.make("outside/file", "x");
  auto sandbox = SandboxDirectory::make(state, "one", std::nullopt);
  const std::string root = "state/sandy/sandbox-one/root/";
  directory.make(root + "place/space/file", "x");
  directory.make(root + "tmp/file", "x");
  directory.link(root + "bin", directory.at("outside"));
  ASSERT_TRUE(sandbox->leave_only("root", "/place/space"));
  EXPECT_TRUE(directory.exists(root + "place/space/file"));
  EXPECT_FALSE(directory.exists(root + "tmp"));
  EXPECT_FALSE(directory.exists(root + "bin"));
  directory.make_directory(root + "way");
  directory.link(root + "way/there", directory.at("outside"));
  ASSERT_TRUE(sandbox->leave_only("root", "/way/there"));
  EXPECT_FALSE(directory.exists(root + "way")) << "a link on the way";
  EXPECT_FALSE(directory.exists(root + "place"));
  EXPECT_TRUE(directory.exists("outside/file"));
  EXPECT_TRUE(sandbox->leave_only("none", "/w"));
}

// The lock is the living process's, whoever else has the directory open.
TEST_F(StateDirectoryTest, TheLockEndsWithItsHolder) {
  auto state = open();
  int ready[2];
  ASSERT_EQ(::pipe2(ready, O_CLOEXEC), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const auto made = SandboxDirectory::make(state, "held", std::nullopt);
    (void)!::write(ready[1], "x", 1);
    if (made) ::pause();
    ::_exit(1);
  }
  char byte = 0;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  state.sweep();
  EXPECT_TRUE(there("held"));
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  state.sweep();
  EXPECT_FALSE(there("held"));
  ::close(ready[0]);
  ::close(ready[1]);
}

}  // namespace
}  // namespace sandy::host
