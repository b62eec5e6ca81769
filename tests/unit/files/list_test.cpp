#include "agent/files/list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "temp_tree.h"

namespace sandy::files {
namespace {

std::string listing(const std::string& path) {
  auto entries = list(path);
  if (!entries) return "<" + std::string(word(entries.error().code)) + ">";
  std::string out;
  for (const ListEntry& entry : *entries) out += (entry.directory ? "d:" : "f:") + entry.name + ";";
  return out;
}

TEST(List, NamesAreExactAndSorted) {
  TempTree tree;
  tree.make_directory("dir");
  tree.make("b", "");
  tree.make(".hidden", "");
  tree.make("new\nline", "");
  tree.make("quo\"te'", "");
  tree.make("\xFF", "");
  tree.link("dangling", "nowhere");
  tree.link("to-dir", "dir");  // not followed
  tree.fifo("p");
  EXPECT_EQ(listing(tree.root()),
            "f:.hidden;f:b;f:dangling;d:dir;f:new\nline;f:p;f:quo\"te';f:to-dir;f:\xFF;");
  EXPECT_EQ(listing(tree.at("to-dir")), "");
}

TEST(List, ErrorsAreNotEmptyListings) {
  TempTree tree;
  tree.make("file", "x");
  tree.make_directory("empty");
  tree.link("loop", "loop");
  EXPECT_EQ(listing(tree.at("empty")), "");
  EXPECT_EQ(listing(tree.at("none")), "<file_not_found>");
  EXPECT_EQ(listing(tree.at("file")), "<not_a_directory>");
  EXPECT_EQ(listing(tree.at("file/x")), "<file_not_found>");
  EXPECT_EQ(listing(tree.at("loop")), "<invalid_path>");
  EXPECT_EQ(listing(""), "<invalid_path>");
  EXPECT_EQ(unprivileged([&] {
              tree.make_directory("locked", 0);
              return listing(tree.at("locked"));
            }),
            "<permission_denied>");
}

TEST(List, Cancel) {
  TempTree tree;
  std::stop_source source;
  source.request_stop();
  EXPECT_EQ(list(tree.root(), source.get_token()).error().code, Code::cancelled);
}

}  // namespace
}  // namespace sandy::files
