#include "agent/files/workspace_path.h"

#include <gtest/gtest.h>

#include <array>

namespace sandy::files {
namespace {

const std::array<std::string, 4> kRootNames = {"usr", "tmp", "etc", "proc"};

std::string map(std::string_view path, std::string_view workspace = "/workspace") {
  return map_path(path, workspace, kRootNames);
}

TEST(MapPath, Table) {
  EXPECT_EQ(map("foo.py"), "/workspace/foo.py");
  EXPECT_EQ(map("/foo.py"), "/workspace/foo.py");
  EXPECT_EQ(map("/large_tool_results/x"), "/workspace/large_tool_results/x");
  EXPECT_EQ(map("/workspace/foo.py"), "/workspace/foo.py");
  EXPECT_EQ(map("/workspace"), "/workspace");
  EXPECT_EQ(map("/usr/bin"), "/usr/bin");
  EXPECT_EQ(map("/usrx/bin"), "/workspace/usrx/bin");
  EXPECT_EQ(map("/tmp"), "/tmp");
  EXPECT_EQ(map("tmp/x"), "/workspace/tmp/x");
  EXPECT_EQ(map("/"), "/");
  EXPECT_EQ(map("//"), "/");
  EXPECT_EQ(map("/.."), "/");
  EXPECT_EQ(map("."), "/workspace/");
  EXPECT_EQ(map(""), "");
  EXPECT_EQ(map("~/x"), "/workspace/~/x");
  EXPECT_EQ(map("/workspace//a/./b"), "/workspace/a/b");
  EXPECT_EQ(map("//foo///bar"), "/workspace/foo/bar");
  EXPECT_EQ(map("/d/"), "/workspace/d/");
  EXPECT_EQ(map("d/."), "/workspace/d/");
}

TEST(MapPath, DotDot) {
  EXPECT_EQ(map("/../x"), "/workspace/x");
  EXPECT_EQ(map("/../../usr/x"), "/usr/x");
  EXPECT_EQ(map("/a/../b"), "/workspace/a/../b");  // "a" may be a link
  EXPECT_EQ(map("/a/../../x"), "/workspace/a/../x");
  EXPECT_EQ(map("/a/../../../b/../../x"), "/workspace/a/../b/../x");
  EXPECT_EQ(map("/workspace/../etc/x"), "/workspace/../etc/x");
  EXPECT_EQ(map("../x"), "/workspace/../x");
  EXPECT_EQ(map("/..foo"), "/workspace/..foo");
}

TEST(MapPath, DeepWorkspace) {
  EXPECT_EQ(map("/home/u/x", "/home/u/project"), "/home/u/x");
  EXPECT_EQ(map("/x", "/home/u/project"), "/home/u/project/x");
  EXPECT_EQ(map("x", "/home/u/project/"), "/home/u/project/x");
  EXPECT_EQ(map("x", "/"), "/x");
  EXPECT_EQ(map(".", "/"), "/");
}

}  // namespace
}  // namespace sandy::files
