#include "agent/files/glob.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "temp_tree.h"

namespace sandy::files {
namespace {

struct Found {
  std::string paths;  // joined by ";"
  GlobReport report;
};

Found search(const std::string& root, std::string_view pattern, const GlobOptions& options = {}) {
  Found found;
  std::string bytes;
  auto report = glob(root, pattern, options, [&](std::string_view chunk) {
    bytes += chunk;
    return true;
  });
  if (!report) return {"<" + std::string(word(report.error().code)) + ">", {}};
  std::replace(bytes.begin(), bytes.end(), '\0', ';');
  return {bytes, *report};
}

struct GlobTest : testing::Test {
  TempTree tree;
};

TEST_F(GlobTest, BareAndPathPatterns) {
  tree.make("a.py", "");
  tree.make("s/b.py", "");
  tree.make(".h/c.py", "");
  tree.make(".d.py", "");
  tree.make_directory("dir.py");
  EXPECT_EQ(search(tree.root(), "*.py").paths, ".h/c.py;a.py;s/b.py;");
  EXPECT_EQ(search(tree.root(), "**/*.py").paths, "a.py;s/b.py;");
  EXPECT_EQ(search(tree.root(), "s/*.py").paths, "s/b.py;");
  EXPECT_EQ(search(tree.root(), "/*.py").paths, "a.py;");
  EXPECT_EQ(search(tree.root(), ".*").paths, ".d.py;");
  EXPECT_EQ(search(tree.root() + "/", "*.txt").paths, "");
  EXPECT_FALSE(search(tree.root(), "*.py").report.truncated);
}

TEST_F(GlobTest, OrderIsThatOfThePathsBytes) {
  for (const char* name : {"a.x", "a/b", "a/a", "a", "aa", "A", "a-b"}) {
    if (std::string_view(name) != "a") tree.make(name, "");
  }
  EXPECT_EQ(search(tree.root(), "*").paths, "A;a-b;a.x;a/a;a/b;aa;");
}

TEST_F(GlobTest, LinksCountOnlyWithinTheRoot) {
  tree.make("root/f", "");
  tree.make("outside", "");
  tree.make_directory("root/d");
  tree.make("root-evil", "");
  tree.link("root/in", "f");
  tree.link("root/out", "../outside");
  tree.link("root/near", "../root-evil");
  tree.link("root/dangling", "nowhere");
  tree.link("root/todir", "d");
  tree.link("root/loop", ".");
  tree.fifo("root/p");
  EXPECT_EQ(search(tree.at("root"), "*").paths, "f;in;");
  tree.link("alias", "root");
  EXPECT_EQ(search(tree.at("alias"), "*").paths, "f;in;");
}

TEST_F(GlobTest, MaxMatchesIsExact) {
  for (int i = 0; i < 5; ++i) tree.make("f" + std::to_string(i), "");
  tree.make("z", "");
  GlobOptions options;
  options.max_matches = 5;
  auto found = search(tree.root(), "f*", options);
  EXPECT_FALSE(found.report.truncated);
  EXPECT_EQ(found.report.matches, 5U);
  options.max_matches = 4;
  found = search(tree.root(), "f*", options);
  EXPECT_EQ(found.paths, "f0;f1;f2;f3;");
  EXPECT_TRUE(found.report.truncated);
  EXPECT_EQ(found.report.truncation_reason, "budget");
}

TEST_F(GlobTest, SpentBudgetIsTold) {
  for (int i = 0; i < 3000; ++i)
    tree.make("d" + std::to_string(i % 50) + "/f" + std::to_string(i), "");
  GlobOptions options;
  options.budget = std::chrono::milliseconds(1);
  auto found = search(tree.root(), "**/**/*{a,b,c,d,e,f}*{1,2,3}*{4,5,6}*", options);
  EXPECT_TRUE(found.report.truncated);
  EXPECT_EQ(found.report.truncation_reason, "budget");
}

TEST_F(GlobTest, UnreadableDirectoriesAreTold) {
  EXPECT_EQ(unprivileged([&] {
              tree.make("a/f", "");
              tree.make("locked/f", "");
              ::chmod(tree.at("locked").c_str(), 0);
              const Found found = search(tree.root(), "f");
              return found.paths + std::string(found.report.truncation_reason) +
                     std::to_string(found.report.walk_errors);
            }),
            "a/f;unreadable1");
}

TEST_F(GlobTest, RootLeavesThePseudoFileSystemsOut) {
  for (const char* name : {"proc/f", "sys/f", "dev/f", "home/f", "home/proc/f"})
    tree.make(name, "");
  const std::string seen = with_mounts([&]() -> std::string {
    if (::chroot(tree.root().c_str()) != 0 || ::chdir("/") != 0) return "chroot";
    return search("/", "f").paths + "|" + search("/proc", "f").paths;
  });
  if (seen.starts_with(kNoNamespace)) GTEST_SKIP() << seen;
  EXPECT_EQ(seen, "home/f;home/proc/f;|f;");
  EXPECT_EQ(search("/proc/sys/kernel", "ostype").paths, "ostype;");
}

TEST_F(GlobTest, NamesOfAnyBytes) {
  tree.make("new\nline.py", "");
  tree.make("bad\xFF.py", "");
  EXPECT_EQ(search(tree.root(), "*.py").paths, "bad\xFF.py;new\nline.py;");
}

TEST_F(GlobTest, Errors) {
  tree.make("f", "");
  EXPECT_EQ(search(tree.at("none"), "*").paths, "<file_not_found>");
  EXPECT_EQ(search(tree.at("f"), "*").paths, "<not_a_directory>");
  EXPECT_EQ(search(tree.root(), "../*").paths, "<invalid_pattern>");
  std::string broad;
  for (int i = 0; i < 11; ++i) broad += "{a,b}";
  EXPECT_EQ(search(tree.root(), broad).paths, "<pattern_too_broad>");
  std::stop_source source;
  source.request_stop();
  EXPECT_EQ(glob(
                tree.root(), "*", {}, [](std::string_view) { return true; }, source.get_token())
                .error()
                .code,
            Code::cancelled);
  EXPECT_EQ(glob(tree.root(), "*", {}, [](std::string_view) { return false; }).error().code,
            Code::cancelled);
}

TEST_F(GlobTest, DepthBeyondPathMaxIsCounted) {
  ASSERT_EQ(in_child([&]() -> std::string {
              if (::chdir(tree.root().c_str()) != 0) return "chdir";
              for (int i = 0; i < 3000; ++i) {
                if (::mkdir("d", 0755) != 0 || ::chdir("d") != 0) return "mkdir";
              }
              return "";
            }),
            "");
  tree.make("d/f", "");
  const Found found = search(tree.root(), "f");
  EXPECT_EQ(found.paths, "d/f;");
  EXPECT_EQ(found.report.truncation_reason, "unreadable");
  EXPECT_EQ(std::system(("rm -rf " + tree.at("d")).c_str()), 0);
}

}  // namespace
}  // namespace sandy::files
