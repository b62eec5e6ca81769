#include "agent/files/stat.h"

#include <gtest/gtest.h>

#include <ctime>

#include "temp_tree.h"

namespace sandy::files {
namespace {

TEST(Stat, Types) {
  TempTree tree;
  tree.make("f", "12345", 0640);
  tree.link("link", "f");
  auto info = stat_path(tree.at("f"));
  ASSERT_TRUE(info);
  EXPECT_EQ(info->type, "file");
  EXPECT_EQ(info->size, 5U);
  EXPECT_EQ(info->mode, 0640U);
  EXPECT_NEAR(static_cast<double>(info->mtime_ns) / 1e9, static_cast<double>(std::time(nullptr)),
              60);
  EXPECT_EQ(stat_path(tree.at("link"))->type, "symlink");
  EXPECT_EQ(stat_path(tree.root())->type, "directory");
  EXPECT_EQ(stat_path(tree.fifo("p"))->type, "other");
  EXPECT_EQ(stat_path(tree.at("none")).error().code, Code::file_not_found);
  EXPECT_EQ(stat_path(tree.at("f/x")).error().code, Code::file_not_found);
  EXPECT_EQ(stat_path("").error().code, Code::invalid_path);
}

}  // namespace
}  // namespace sandy::files
