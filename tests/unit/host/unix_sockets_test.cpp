#include "host/unix_sockets.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>

#include "base/unique_fd.h"
#include "test_directory.h"

namespace sandy::host {
namespace {

// A socket that is bound while this lives, as `name` from the current directory.
class Bound {
 public:
  explicit Bound(const std::string& name) : fd_(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
    name.copy(address.sun_path, sizeof address.sun_path);
    if (::bind(fd_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) throw std::runtime_error(name);
  }

 private:
  UniqueFd fd_;
};

bool lists(const std::string& path, const std::string& tree = "/tmp") {
  const auto all = bound_sockets({"/usr", tree});
  if (!all) throw std::runtime_error(all.error().text());
  EXPECT_TRUE(std::ranges::is_sorted(*all));
  return std::ranges::count(*all, path) == 1;
}

TEST(BoundSockets, AreFoundWhereTheyAre) {
  const TestDirectory directory;
  directory.make("real/sub/x", "");
  directory.link("link", "real/sub");
  for (const char* name : {"real/s", "real/new\nline", "real/\n", "real/bad\xff\xfe", "real/with space "}) {
    const std::string path = directory.at(name);
    const Bound socket(path);
    EXPECT_TRUE(lists(path)) << name;
  }
  // By a link in a directory's place, and "..": the kernel's meaning.
  const Bound linked(directory.at("link/a")), up(directory.at("link/../b"));
  EXPECT_TRUE(lists(directory.at("real/sub/a")));
  EXPECT_TRUE(lists(directory.at("real/b")));
  EXPECT_FALSE(lists(directory.at("link/a")));
}

TEST(BoundSockets, InOneOfTheTrees) {
  const TestDirectory directory;
  directory.make("a/b/x", "");
  directory.link("link", "a");
  const Bound inner(directory.at("link/b/s")), outer(directory.at("s"));
  for (const char* tree : {"a", "a/b", "."}) EXPECT_TRUE(lists(directory.at("a/b/s"), tree == std::string(".") ? directory.path() : directory.at(tree)));
  EXPECT_TRUE(lists(directory.at("s"), "/"));
  EXPECT_FALSE(lists(directory.at("s"), directory.at("a")));
  EXPECT_FALSE(lists(directory.at("a/b/s"), directory.at("a/b/s")));
  EXPECT_FALSE(lists(directory.at("a/b/s"), directory.at("a/b-")));
}

TEST(BoundSockets, WhatIsNotThereIsLeftOut) {
  const TestDirectory directory;
  const Bound removed(directory.at("removed")), replaced(directory.at("replaced")), moved(directory.at("moved")), old(directory.at("old"));
  ASSERT_EQ(::unlink(directory.at("removed").c_str()), 0);
  ASSERT_EQ(::unlink(directory.at("replaced").c_str()), 0);
  directory.make("replaced", "a file");
  ASSERT_EQ(::rename(directory.at("moved").c_str(), directory.at("new").c_str()), 0);
  directory.link("moved", "new");
  for (const char* name : {"removed", "replaced", "moved"}) EXPECT_FALSE(lists(directory.at(name))) << name;
  EXPECT_TRUE(lists(directory.at("new")));  // a link is left where it was
  { const Bound stale(directory.at("stale")); }
  EXPECT_FALSE(lists(directory.at("stale")));  // nobody is bound to it
}

TEST(LocatedSockets, TakeAnyText) {
  EXPECT_TRUE(located_sockets({"/", "/.", "/..", "//", "/no/such", "/dev/null", "/dev/null/x", "/" + std::string(300, 'x')}, {"/"}).empty());
}

TEST(RemovePlaceholders, AnEmptyFileInASocketsPlace) {
  const TestDirectory directory;
  directory.make("empty", "");
  directory.make("full", "x");
  directory.make("read_only", "");
  directory.make("other/empty", "");
  directory.link("link", "empty");
  directory.link("linked", "other");
  const Bound socket(directory.at("socket"));
  remove_placeholders({{directory.at("empty"), true}, {directory.at("full"), true}, {directory.at("read_only"), false}, {directory.at("socket"), true},
                       {directory.at("link"), true}, {directory.at("linked/empty"), true}, {directory.at("gone"), true}});
  EXPECT_FALSE(std::filesystem::exists(directory.at("empty")));
  for (const char* name : {"full", "read_only", "other/empty", "socket"}) EXPECT_TRUE(std::filesystem::exists(directory.at(name))) << name;
  EXPECT_TRUE(std::filesystem::is_symlink(directory.at("link")));
}

}  // namespace
}  // namespace sandy::host
