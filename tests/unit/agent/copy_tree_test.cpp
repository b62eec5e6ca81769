#include "agent/copy_tree.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/unique_fd.h"

namespace sandy::agent {
namespace {

namespace fs = std::filesystem;

class CopyTreeTest : public ::testing::Test {
 protected:
  CopyTreeTest() {
    std::string pattern = "/tmp/sandy-copy-XXXXXX";
    if (::mkdtemp(pattern.data()) == nullptr) std::abort();
    root = pattern;
  }
  ~CopyTreeTest() override { fs::remove_all(root); }

  std::string at(const std::string& name) const { return root + "/" + name; }
  void write(const std::string& name, const std::string& text) const { std::ofstream(at(name)) << text; }
  std::string read(const std::string& name) const {
    std::ifstream in(at(name));
    return {std::istreambuf_iterator<char>(in), {}};
  }
  mode_t mode(const std::string& name) const {
    struct stat st{};
    return ::lstat(at(name).c_str(), &st) == 0 ? st.st_mode & 07777 : 0;
  }
  bool copy(const std::string& from, const std::string& to) const {
    CopyBudget budget;
    return copy_tree(at(from), at(to), budget);
  }

  std::string root;
};

TEST_F(CopyTreeTest, CopiesATreeAsItIs) {
  fs::create_directories(at("a/deep"));
  write("a/file", std::string(300'000, 'x'));
  write("a/deep/program", "#!/bin/sh\n");
  fs::create_symlink("../file", at("a/deep/link"));
  fs::create_symlink("/nonexistent", at("a/dangling"));
  ASSERT_EQ(::mkfifo(at("a/fifo").c_str(), 0600), 0);
  ASSERT_EQ(::chmod(at("a/deep/program").c_str(), 06750), 0);
  ASSERT_EQ(::chmod(at("a/deep").c_str(), 0700), 0);
  const timespec old[2] = {{1'000'000'000, 0}, {1'000'000'000, 5}};
  ASSERT_EQ(::utimensat(AT_FDCWD, at("a/file").c_str(), old, 0), 0);
  ASSERT_TRUE(copy("a", "b"));
  EXPECT_EQ(read("b/file"), std::string(300'000, 'x'));
  EXPECT_EQ(mode("b/deep/program"), 0750U);  // no set-id bits
  EXPECT_EQ(mode("b/deep"), 0700U);
  EXPECT_EQ(fs::read_symlink(at("b/deep/link")), "../file");
  EXPECT_EQ(fs::read_symlink(at("b/dangling")), "/nonexistent");
  EXPECT_TRUE(fs::is_fifo(at("b/fifo")));
  struct stat st{};
  ASSERT_EQ(::stat(at("b/file").c_str(), &st), 0);
  EXPECT_EQ(st.st_mtim.tv_sec, 1'000'000'000);
}

TEST_F(CopyTreeTest, NothingIsReplacedAndNoLinkFollowed) {
  write("a", "new");
  write("there", "old");
  fs::create_symlink("there", at("link"));
  EXPECT_FALSE(copy("a", "there"));
  EXPECT_FALSE(copy("a", "link"));
  EXPECT_EQ(read("there"), "old");
  ASSERT_TRUE(copy("link", "copied"));
  EXPECT_TRUE(fs::is_symlink(at("copied")));
}

TEST_F(CopyTreeTest, StaysWithinTheBudget) {
  fs::create_directories(at("a"));
  for (int i = 0; i < 10; ++i) write("a/" + std::to_string(i), "0123456789");
  CopyBudget entries{.bytes = 1'000, .entries = 10};
  EXPECT_FALSE(copy_tree(at("a"), at("b"), entries));
  CopyBudget bytes{.bytes = 99, .entries = 100};
  EXPECT_FALSE(copy_tree(at("a"), at("c"), bytes));
  CopyBudget enough{.bytes = 100, .entries = 11};
  EXPECT_TRUE(copy_tree(at("a"), at("d"), enough));
}

TEST_F(CopyTreeTest, ASocketCannotBeCopied) {
  const UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, at("socket").c_str(), sizeof address.sun_path - 1);
  ASSERT_EQ(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  EXPECT_FALSE(copy("socket", "copy"));
  EXPECT_FALSE(copy("missing", "copy"));
}

}  // namespace
}  // namespace sandy::agent
