#include "host/remove_tree.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "base/unique_fd.h"
#include "test_directory.h"

namespace sandy::host {
namespace {

// Thousands of directories: on a disk that would take its time.
const char* in_memory() { return ::access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp"; }

std::string removed(const TestDirectory& directory, const std::string& name) {
  const auto result = remove_tree(directory.fd(), name);
  if (!result) return result.error().text();
  return directory.exists(name) ? "still there" : "";
}

TEST(RemoveTree, FilesLinksAndDirectories) {
  const TestDirectory directory(in_memory());
  directory.make("tree/a/b/file", "x");
  directory.make("tree/two\nlines\xff/f", "x");
  directory.link("tree/a/dangling", "none");
  ASSERT_EQ(::mkfifo(directory.at("tree/fifo").c_str(), 0644), 0);
  EXPECT_EQ(removed(directory, "tree"), "");
}

TEST(RemoveTree, MissingIsSuccess) {
  const TestDirectory directory(in_memory());
  EXPECT_EQ(removed(directory, "none"), "");
}

TEST(RemoveTree, AFileOrALinkByItself) {
  const TestDirectory directory(in_memory());
  directory.make("outside/file", "x");
  directory.make("file", "x");
  directory.link("link", "outside");
  EXPECT_EQ(removed(directory, "file"), "");
  EXPECT_EQ(removed(directory, "link"), "");
  EXPECT_TRUE(directory.exists("outside/file"));
}

TEST(RemoveTree, LinksToOutsideAreNotFollowed) {
  const TestDirectory directory(in_memory());
  directory.make("outside/dir/file", "x", 0640);
  ASSERT_EQ(::chmod(directory.at("outside/dir").c_str(), 0500), 0);
  directory.make_directory("tree/sub");
  directory.link("tree/to_dir", "../outside/dir");
  directory.link("tree/sub/to_file", directory.at("outside/dir/file"));
  directory.link("tree/sub/to_root", "/");
  directory.link("tree/.sandy-removed-0", "../outside");
  EXPECT_EQ(removed(directory, "tree"), "");
  EXPECT_EQ(content_of(directory.at("outside/dir/file")), "x");
  struct stat st{};
  ASSERT_EQ(::stat(directory.at("outside/dir").c_str(), &st), 0);
  EXPECT_EQ(st.st_mode & 0777, 0500U);
  ::chmod(directory.at("outside/dir").c_str(), 0700);
}

TEST(RemoveTree, TenThousandLevels) {
  const TestDirectory directory(in_memory());
  directory.make_directory("tree");
  UniqueFd at(::open(directory.at("tree").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  for (int i = 0; i < 10'000; ++i) {
    ASSERT_EQ(::mkdirat(at.get(), "d", 0755), 0);
    at.reset(::openat(at.get(), "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    ASSERT_TRUE(at);
  }
  at.reset();
  EXPECT_EQ(removed(directory, "tree"), "");
}

TEST(RemoveTree, NamesLikeItsOwn) {
  const TestDirectory directory(in_memory());
  for (int i = 0; i < 5; ++i) {
    const std::string name = "/.sandy-removed-" + std::to_string(i);
    directory.make("tree" + name + name + name + "/file", "x");
    directory.make("tree/a" + name + "/b/c/file", "x");
  }
  directory.make("tree/.sandy-removed-7", "a file");
  EXPECT_EQ(removed(directory, "tree"), "");
}

TEST(RemoveTree, DirectoriesThatAreShut) {
  const TestDirectory directory(in_memory());
  const std::string result = unprivileged([&]() -> std::string {
    for (const mode_t mode : {0000, 0100, 0200, 0300, 0400, 0500, 0600}) {
      const std::string name = "tree" + std::to_string(mode);
      directory.make(name + "/a/b/c/file", "x");
      directory.make(name + "/top", "x");
      for (const char* shut : {"/a/b/c", "/a/b", "/a", ""}) ::chmod(directory.at(name + shut).c_str(), mode);
      if (const auto text = removed(directory, name); !text.empty()) return "mode " + std::to_string(mode) + ": " + text;
    }
    return "";
  });
  EXPECT_EQ(result, "");
}

TEST(RemoveTree, WhatCannotBeRemovedIsAnErrorAndTheRestGoes) {
  const TestDirectory directory(in_memory());
  const std::string result = unprivileged([&]() -> std::string {
    directory.make("parent/tree/a/file", "x");
    const UniqueFd parent(::open(directory.at("parent").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    ::chmod(directory.at("parent").c_str(), 0555);  // the tree's own name has to stay
    const auto out = remove_tree(parent.get(), "tree");
    ::chmod(directory.at("parent").c_str(), 0755);
    if (out) return "success, and it is still there";
    return directory.exists("parent/tree/a") ? "the rest is still there" : "";
  });
  EXPECT_EQ(result, "");
}

// Whatever a process in the tree does meanwhile: nothing outside is touched, and when it is gone the tree can be removed.
TEST(RemoveTree, ARacingWriter) {
  const TestDirectory directory(in_memory());
  for (int i = 0; i < 50; ++i) directory.make("outside/keep" + std::to_string(i), "x");
  for (int round = 0; round < 15; ++round) {
    directory.make_directory("tree");
    std::atomic<bool> stop = false;
    std::thread writer([&] {
      for (unsigned i = 0; !stop; ++i) {
        const std::string name = "tree/d" + std::to_string(i % 7);
        (void)::mkdir(directory.at("tree").c_str(), 0755);
        (void)::mkdir(directory.at(name).c_str(), 0755);
        (void)::mkdir(directory.at(name + "/sub").c_str(), 0755);
        (void)!::symlink("../outside", directory.at("tree/link").c_str());
        // A directory becomes a link to outside, and back.
        (void)::renameat2(AT_FDCWD, directory.at(name).c_str(), AT_FDCWD, directory.at("tree/link").c_str(), RENAME_EXCHANGE);
        const UniqueFd file(::open(directory.at(name + "/sub/file").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644));
      }
    });
    for (int i = 0; i < 5; ++i) (void)remove_tree(directory.fd(), "tree");
    stop = true;
    writer.join();
    ASSERT_EQ(removed(directory, "tree"), "");
    for (int i = 0; i < 50; ++i) ASSERT_TRUE(directory.exists("outside/keep" + std::to_string(i)));
    ASSERT_TRUE(directory.exists("outside"));
  }
}

}  // namespace
}  // namespace sandy::host
