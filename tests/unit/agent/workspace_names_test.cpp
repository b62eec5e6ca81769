#include "agent/workspace_names.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>

namespace sandy::agent {
namespace {

namespace fs = std::filesystem;

// A directory stands for `/`. Each test runs with inotify and without.
class WorkspaceNamesTest : public ::testing::TestWithParam<bool> {
 protected:
  WorkspaceNamesTest() {
    std::string pattern = "/tmp/sandy-names-XXXXXX";
    if (::mkdtemp(pattern.data()) == nullptr) std::abort();
    root = pattern;
    workspace = root + "/workspace";
    fs::create_directories(workspace);
    fs::create_directories(root + "/usr");
  }
  ~WorkspaceNamesTest() override {
    names.reset();
    fs::remove_all(root);
  }

  void start() {
    if (GetParam()) {
      names.emplace(root, workspace, std::set<std::string, std::less<>>{"usr", "tmp"});
      ASSERT_GE(names->descriptor(), 0) << "no inotify: fs.inotify.max_user_instances may be used up";
      return;
    }
    // No descriptor is left while it is made.
    rlimit limit{}, none{};
    ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
    none = limit;
    const UniqueFd next(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    none.rlim_cur = static_cast<rlim_t>(next.get());
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
    names.emplace(root, workspace, std::set<std::string, std::less<>>{"usr", "tmp"});
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
    ASSERT_EQ(names->descriptor(), -1);
    names->sync(true);
  }
  void sync() { names->sync(true); }

  std::string top(const std::string& name) const { return root + "/" + name; }
  std::string inner(const std::string& name) const { return workspace + "/" + name; }
  static void write(const std::string& path, const std::string& text) { std::ofstream(path) << text; }
  static std::string read(const std::string& path) {
    std::ifstream in(path);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  static ino_t inode(const std::string& path) {
    struct stat st{};
    return ::lstat(path.c_str(), &st) == 0 ? st.st_ino : 0;
  }
  bool is_alias(const std::string& name) const { return fs::is_symlink(top(name)) && fs::read_symlink(top(name)) == inner(name); }
  static bool is_there(const std::string& path) { return inode(path) != 0; }

  std::string root, workspace;
  std::optional<WorkspaceNames> names;
};

TEST_P(WorkspaceNamesTest, WhatIsThereAtTheStart) {
  write(inner("a.py"), "a");
  write(top("b.py"), "b");
  start();
  EXPECT_TRUE(is_alias("a.py"));
  EXPECT_TRUE(is_alias("b.py"));
  EXPECT_EQ(read(top("a.py")), "a");
  EXPECT_EQ(read(inner("b.py")), "b");
}

TEST_P(WorkspaceNamesTest, AWorkspaceEntryGetsAnAlias) {
  start();
  write(inner("foo.py"), "x");
  fs::create_directories(inner("dir/sub"));
  sync();
  EXPECT_TRUE(is_alias("foo.py"));
  EXPECT_TRUE(is_alias("dir"));
  write(top("dir/sub/file"), "through the alias");
  EXPECT_EQ(read(inner("dir/sub/file")), "through the alias");
}

TEST_P(WorkspaceNamesTest, AnEntryOfTheRootMovesWithItsInode) {
  start();
  write(top("foo.txt"), "first");
  const UniqueFd open_file(::open(top("foo.txt").c_str(), O_RDWR | O_APPEND | O_CLOEXEC));
  fs::create_directories(top("dir/sub"));
  const UniqueFd open_directory(::open(top("dir").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const ino_t file = inode(top("foo.txt")), directory = inode(top("dir"));
  sync();
  EXPECT_EQ(inode(inner("foo.txt")), file);
  EXPECT_EQ(inode(inner("dir")), directory);
  EXPECT_TRUE(is_alias("foo.txt"));
  EXPECT_TRUE(is_alias("dir"));
  ASSERT_EQ(::write(open_file.get(), " second", 7), 7);
  EXPECT_EQ(read(inner("foo.txt")), "first second");
  EXPECT_EQ(::mkdirat(open_directory.get(), "later", 0755), 0);
  EXPECT_TRUE(fs::is_directory(inner("dir/later")));
}

TEST_P(WorkspaceNamesTest, SystemNamesAreLeftAlone) {
  start();
  write(top("tmp"), "the system's");
  fs::create_directories(inner("usr"));
  fs::create_directories(inner("workspace"));
  sync();
  EXPECT_FALSE(fs::is_symlink(top("tmp")));
  EXPECT_FALSE(is_there(inner("tmp")));
  EXPECT_FALSE(fs::is_symlink(top("usr")));
  EXPECT_FALSE(fs::is_symlink(workspace));
}

TEST_P(WorkspaceNamesTest, ADeletedEntryLosesItsAlias) {
  start();
  write(inner("a"), "x");
  sync();
  fs::remove(inner("a"));
  sync();
  EXPECT_FALSE(is_there(top("a")));
}

TEST_P(WorkspaceNamesTest, ADeletedAliasComesBack) {
  start();
  write(inner("a"), "x");
  sync();
  fs::remove(top("a"));
  sync();
  EXPECT_TRUE(is_alias("a"));
  EXPECT_EQ(read(inner("a")), "x");
}

TEST_P(WorkspaceNamesTest, AFileRenamedOverTheAliasIsTheNewContent) {
  start();
  write(inner("a"), "old");
  sync();
  write(root + "/usr/saved", "new");
  fs::rename(root + "/usr/saved", top("a"));
  sync();
  EXPECT_EQ(read(inner("a")), "new");
  EXPECT_TRUE(is_alias("a"));
}

TEST_P(WorkspaceNamesTest, WritingThroughADanglingAliasMakesTheFile) {
  start();
  write(inner("a"), "x");
  sync();
  fs::remove(inner("a"));
  write(top("a"), "again");  // before the alias is gone
  sync();
  EXPECT_EQ(read(inner("a")), "again");
  EXPECT_TRUE(is_alias("a"));
}

TEST_P(WorkspaceNamesTest, LinksOfCommandsAreEntriesLikeOthers) {
  start();
  fs::create_symlink("/nowhere/at/all", top("dangling"));
  fs::create_symlink("nowhere", inner("dangling2"));
  sync();
  EXPECT_EQ(fs::read_symlink(inner("dangling")), "/nowhere/at/all");
  EXPECT_TRUE(is_alias("dangling"));
  EXPECT_TRUE(is_alias("dangling2"));
  EXPECT_EQ(fs::read_symlink(inner("dangling2")), "nowhere");
}

TEST_P(WorkspaceNamesTest, ARenamedEntryIsFollowed) {
  start();
  write(inner("a"), "x");
  sync();
  fs::rename(inner("a"), inner("b"));
  sync();
  EXPECT_FALSE(is_there(top("a")));
  EXPECT_TRUE(is_alias("b"));
}

TEST_P(WorkspaceNamesTest, OddNames) {
  start();
  for (const std::string name : {"two\nlines", "-rf", "\xff\xfe", " ", "a b", ".hidden", "...", "\"q'"}) {
    write(top(name), name);
    write(inner(name + "2"), name);
  }
  sync();
  for (const std::string name : {"two\nlines", "-rf", "\xff\xfe", " ", "a b", ".hidden", "...", "\"q'"}) {
    EXPECT_TRUE(is_alias(name)) << name;
    EXPECT_EQ(read(inner(name)), name);
    EXPECT_TRUE(is_alias(name + "2")) << name;
  }
}

TEST_P(WorkspaceNamesTest, NothingIsLostWhenBothHaveTheName) {
  start();
  fs::create_directories(top("both"));
  write(top("both/in_root"), "1");
  fs::create_directories(inner("both"));
  write(inner("both/in_workspace"), "2");
  write(top("mixed"), "a file");
  fs::create_directories(inner("mixed"));
  sync();
  EXPECT_EQ(read(top("both/in_root")), "1");
  EXPECT_EQ(read(inner("both/in_workspace")), "2");
  EXPECT_EQ(read(top("mixed")), "a file");
  EXPECT_TRUE(fs::is_directory(inner("mixed")));
}

TEST_P(WorkspaceNamesTest, SyncingTwiceChangesNothing) {
  start();
  write(inner("a"), "1");
  write(top("b"), "2");
  sync();
  const auto file = inode(inner("a")), alias = inode(top("a")), moved = inode(inner("b"));
  for (int i = 0; i < 3; ++i) sync();
  EXPECT_EQ(inode(inner("a")), file);
  EXPECT_EQ(inode(top("a")), alias);
  EXPECT_EQ(inode(inner("b")), moved);
}

TEST_P(WorkspaceNamesTest, MoreChangesThanTheQueueHolds) {
  start();
  // fs.inotify.max_queued_events is 16,384 by default: each file makes two events or more.
  for (int round = 0; round < 100; ++round) {
    for (int i = 0; i < 100; ++i) write(inner("n" + std::to_string(i)), "");
    if (round < 99) {
      for (int i = 0; i < 100; ++i) fs::remove(inner("n" + std::to_string(i)));
    }
  }
  write(top("last"), "x");
  sync();
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(is_alias("n" + std::to_string(i)));
  EXPECT_TRUE(is_alias("last"));
}

TEST_P(WorkspaceNamesTest, LocateFindsWhatOnlyTheRootHas) {
  start();
  write(inner("in_workspace"), "");
  write(top("only_root"), "");  // not yet synced, or on another mount
  EXPECT_EQ(names->locate(inner("in_workspace")), inner("in_workspace"));
  EXPECT_EQ(names->locate(inner("only_root")), top("only_root"));
  EXPECT_EQ(names->locate(inner("only_root/below/it")), top("only_root/below/it"));
  EXPECT_EQ(names->locate(inner("new")), inner("new"));
  EXPECT_EQ(names->locate(inner("usr/x")), inner("usr/x"));
  EXPECT_EQ(names->locate(workspace), workspace);
  EXPECT_EQ(names->locate("/elsewhere"), "/elsewhere");
}

INSTANTIATE_TEST_SUITE_P(Inotify, WorkspaceNamesTest, ::testing::Bool(), [](const auto& test) { return test.param ? "With" : "Without"; });

}  // namespace
}  // namespace sandy::agent
