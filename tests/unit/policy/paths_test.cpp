#include "policy/paths.h"

#include "policy_testing.h"

namespace sandy::policy {
namespace {

using testing::HasSubstr;

TEST(Normalized, KeepsDotDot) {
  const std::vector<std::pair<const char*, const char*>> rows{
      {"/", "/"},
      {"//", "/"},
      {"/a", "/a"},
      {"/a/", "/a"},
      {"/a//b///", "/a/b"},
      {"/a/./b/.", "/a/b"},
      {"/a/../b", "/a/../b"},
      {"/a/b/..//./../c/", "/a/b/../../c"},
      {"/..", "/"},
      {"/../../etc/../x", "/etc/../x"},
      {"/./../x", "/x"},
      {"/a/..", "/a/.."},
      {"/a/../..", "/a/../.."},
      {"/a/...", "/a/..."},
      {"/a/..b/.c", "/a/..b/.c"},
      {"/a b/\n\"'\\", "/a b/\n\"'\\"},
      {"/\xff\xfe/x", "/\xff\xfe/x"},
  };
  for (const auto& [path, expected] : rows) {
    EXPECT_EQ(normalized(path), expected) << path;
    EXPECT_EQ(normalized(normalized(path)), expected) << path;
  }
}

TEST(HasDotDot, AsAName) {
  for (const char* path : {"/a/..", "/a/../b", "/a/b/../../c"}) EXPECT_TRUE(has_dot_dot(path));
  for (const char* path : {"/", "/a", "/a/...", "/a/..b", "/a../b", "/.a/b"})
    EXPECT_FALSE(has_dot_dot(path)) << path;
}

TEST(IsWithin, ByComponents) {
  EXPECT_TRUE(is_within("/a", "/a"));
  EXPECT_TRUE(is_within("/a/b", "/a"));
  EXPECT_FALSE(is_within("/ab", "/a"));
  EXPECT_FALSE(is_within("/a", "/a/b"));
  EXPECT_TRUE(is_within("/a", "/"));
  EXPECT_TRUE(is_within("/", "/"));
  EXPECT_FALSE(is_within("/", "/a"));
}

TEST(HostPath, ExpandsAndNormalizes) {
  const std::vector<std::pair<const char*, const char*>> rows{
      {"/srv/../data/", "/srv/../data"},
      {"~", "/home/user"},
      {"~/", "/home/user"},
      {"~/x//y", "/home/user/x/y"},
      {"~/../other", "/home/user/../other"},
      {".", "/home/user/project"},
      {"src", "/home/user/project/src"},
      {"./~x", "/home/user/project/~x"},
      {"../..", "/home/user/project/../.."},
      {"a~", "/home/user/project/a~"},
  };
  for (const auto& [path, expected] : rows) {
    EXPECT_EQ(host_path({path, "k"}, test_caller()).value(), expected) << path;
  }
}

TEST(HostPath, LiteralBytesAreNotExpanded) {
  EXPECT_EQ(host_path({"~/x", "k", true}, test_caller()).value(), "/home/user/project/~/x");
  EXPECT_EQ(host_path({"~root", "k", true}, test_caller()).value(), "/home/user/project/~root");
}

TEST(HostPath, Refuses) {
  const Caller nobody{"", "", "", 65534};
  EXPECT_THAT(host_path({"", "k"}, test_caller()).error().text(), HasSubstr("k: an empty path"));
  EXPECT_THAT(host_path({"~root/x", "k"}, test_caller()).error().text(), HasSubstr("~user"));
  EXPECT_THAT(host_path({std::string("/a\0b", 4), "k"}, test_caller()).error().text(),
              HasSubstr("NUL"));
  EXPECT_THAT(host_path({"~/x", "k"}, nobody).error().text(), HasSubstr("no home directory"));
  EXPECT_THAT(host_path({"x", "k"}, nobody).error().text(), HasSubstr("no current directory"));
  EXPECT_THAT(host_path({"x", "k"}, Caller{"", "relative", "", 0}).error().text(),
              HasSubstr("no current directory"));
  EXPECT_TRUE(host_path({"/" + std::string(4094, 'a'), "k"}, test_caller()));
  EXPECT_THAT(host_path({"/" + std::string(4095, 'a'), "k"}, test_caller()).error().text(),
              HasSubstr("4095"));
  // The limit is for the whole path, not for what was written.
  EXPECT_FALSE(host_path({std::string(4090, 'a'), "k"}, test_caller()));
}

TEST(SandboxPath, MustBeAbsolute) {
  EXPECT_EQ(sandbox_path({"/a//../b/", "k"}).value(), "/a/../b");
  EXPECT_THAT(sandbox_path({"a", "k"}).error().text(), HasSubstr("must be absolute"));
  EXPECT_THAT(sandbox_path({"~/a", "k"}).error().text(), HasSubstr("must be absolute"));
  EXPECT_FALSE(sandbox_path({"", "k"}));
}

}  // namespace
}  // namespace sandy::policy
