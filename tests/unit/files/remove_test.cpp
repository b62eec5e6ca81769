#include "agent/files/remove.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "temp_tree.h"

namespace sandy::files {
namespace {

std::string gone(const std::string& path, std::stop_token stop = {}) {
  auto done = remove(path, stop);
  return done ? "" : std::string(word(done.error().code));
}

struct RemoveTest : testing::Test {
  TempTree tree;
};

TEST_F(RemoveTest, FilesLinksAndSpecialFiles) {
  tree.make("f", "x");
  tree.make("locked", "x", 0);
  tree.fifo("p");
  tree.link("dangling", "nowhere");
  for (const char* name : {"f", "locked", "p", "dangling"}) {
    EXPECT_EQ(gone(tree.at(name)), "") << name;
    EXPECT_FALSE(tree.exists(name));
  }
}

TEST_F(RemoveTest, TreesWithAllKindsInThem) {
  tree.make("t/a/b/f", "x");
  tree.make("t/a/.hidden", "x");
  tree.make("t/new\nline \"quoted\" \xFF", "x");
  tree.make_directory("t/empty");
  tree.make("t/c/d/f", "x");
  EXPECT_EQ(gone(tree.at("t/")), "");
  EXPECT_FALSE(tree.exists("t"));
}

TEST_F(RemoveTest, LinksAreNotFollowed) {
  tree.make("kept/f", "x");
  tree.make_directory("t");
  tree.link("t/link", tree.at("kept"));
  tree.link("top", tree.at("kept"));
  EXPECT_EQ(gone(tree.at("t")), "");
  EXPECT_EQ(gone(tree.at("top")), "");
  EXPECT_EQ(tree.content("kept/f"), "x");
  tree.link("slash", tree.at("kept"));
  EXPECT_EQ(gone(tree.at("slash/")), "");
  EXPECT_EQ(tree.content("kept/f"), "x");
}

TEST_F(RemoveTest, LockedDirectoriesAreOpenedUp) {
  EXPECT_EQ(unprivileged([&] {
              tree.make("t/a/f", "x");
              tree.make("t/b/c/f", "x");
              tree.make("t/r/f", "x");
              ::chmod(tree.at("t/a").c_str(), 0);
              ::chmod(tree.at("t/b/c").c_str(), 0500);
              ::chmod(tree.at("t/b").c_str(), 0500);
              ::chmod(tree.at("t/r").c_str(), 0400);
              ::chmod(tree.at("t").c_str(), 0500);
              return gone(tree.at("t"));
            }),
            "");
  EXPECT_FALSE(tree.exists("t"));
}

TEST_F(RemoveTest, WhatBelongsToOthersStaysAndTheRestGoes) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs files of two users";
  tree.make_directory("t", 0777);
  tree.make("t/theirs/f", "x");  // root's, mode 0755
  EXPECT_EQ(unprivileged([&] {
              tree.make("t/own/f", "x");
              tree.make("t/zown/f", "x");
              return gone(tree.at("t"));
            }),
            "permission_denied");
  EXPECT_THAT(tree.names("t"), testing::ElementsAre("theirs"));
}

TEST_F(RemoveTest, DirectoryThatHoldsIt) {
  EXPECT_EQ(unprivileged([&] {
              tree.make("d/f", "x");
              ::chmod(tree.at("d").c_str(), 0555);
              return gone(tree.at("d/f"));
            }),
            "permission_denied");
  EXPECT_TRUE(tree.exists("d/f"));
  EXPECT_EQ(tree.mode("d"), 0555U);
}

TEST_F(RemoveTest, TenThousandLevels) {
  ASSERT_EQ(in_child([&]() -> std::string {
              if (::chdir(tree.root().c_str()) != 0) return "chdir";
              for (int i = 0; i < 10'000; ++i) {
                if (::mkdir("d", 0755) != 0 || ::chdir("d") != 0) return "mkdir";
              }
              return "";
            }),
            "");
  EXPECT_EQ(gone(tree.at("d")), "");
  EXPECT_FALSE(tree.exists("d"));
}

TEST_F(RemoveTest, ManyEntries) {
  for (int i = 0; i < 3000; ++i) tree.make("t/f" + std::to_string(i), "");
  for (int i = 0; i < 500; ++i) tree.make_directory("t/d" + std::to_string(i) + "/x");
  EXPECT_EQ(gone(tree.at("t")), "");
  EXPECT_FALSE(tree.exists("t"));
}

TEST_F(RemoveTest, Refusals) {
  tree.make("f", "x");
  EXPECT_EQ(gone(tree.at("none")), "file_not_found");
  EXPECT_EQ(gone(tree.at("f/x")), "file_not_found");
  EXPECT_EQ(gone(""), "invalid_path");
  EXPECT_EQ(gone(std::string("f\0", 2)), "invalid_path");
  EXPECT_EQ(gone("/"), "permission_denied");
  EXPECT_EQ(gone("//"), "permission_denied");
  EXPECT_EQ(gone(tree.at(".")), "invalid_path");
  EXPECT_EQ(gone(tree.at("x/..")), "invalid_path");
  EXPECT_EQ(gone("/proc"), "permission_denied");  // a mount point
  EXPECT_TRUE(tree.exists("f"));
}

TEST_F(RemoveTest, MountPointsKeepWhatIsInThem) {
  const std::string seen = with_mounts([&]() -> std::string {
    tree.make("t/f", "x");
    tree.make_directory("t/m");
    if (::mount("none", tree.at("t/m").c_str(), "tmpfs", 0, nullptr) != 0) return "mount";
    tree.make("t/m/f", "kept");
    // A bind of the same file system: its device number tells nothing.
    tree.make("other/f", "kept");
    tree.make_directory("t/bind");
    if (::mount(tree.at("other").c_str(), tree.at("t/bind").c_str(), nullptr, MS_BIND, nullptr) !=
        0) {
      return "bind";
    }
    std::string out = gone(tree.at("t/m"));
    out += "|" + gone(tree.at("t/bind"));
    out += "|" + gone(tree.at("t"));
    out += "|" + tree.content("t/m/f") + "|" + tree.content("t/bind/f");
    for (const std::string& name : tree.names("t")) out += "|" + name;
    return out;
  });
  if (seen.starts_with(kNoNamespace)) GTEST_SKIP() << seen;
  EXPECT_EQ(seen, "permission_denied|permission_denied|permission_denied|kept|kept|bind|m");
}

TEST_F(RemoveTest, Cancel) {
  tree.make("t/f", "x");
  std::stop_source source;
  source.request_stop();
  EXPECT_EQ(gone(tree.at("t"), source.get_token()), "cancelled");
  EXPECT_TRUE(tree.exists("t/f"));
}

}  // namespace
}  // namespace sandy::files
