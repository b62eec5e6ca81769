#include "agent/files/grep.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include "temp_tree.h"

namespace sandy::files {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

struct Found {
  std::vector<std::string> lines;  // "path:line:text"
  GrepReport report;
  std::string error;
};

Found search(const std::string& root, std::string_view pattern, const GrepOptions& options = {}) {
  Found found;
  std::string bytes;
  auto report = grep(root, pattern, options, [&](std::string_view chunk) {
    EXPECT_LE(chunk.size(), kMaxChunk);
    bytes += chunk;
    return true;
  });
  if (!report) {
    found.error = word(report.error().code);
    return found;
  }
  found.report = *report;
  std::vector<std::string> fields;
  for (std::size_t at = 0; at < bytes.size();) {
    const std::size_t end = bytes.find('\0', at);
    fields.push_back(bytes.substr(at, end - at));
    at = end + 1;
  }
  EXPECT_EQ(fields.size() % 3, 0U);
  for (std::size_t i = 0; i + 2 < fields.size(); i += 3) {
    std::string path = fields[i];
    if (path.starts_with(root + "/")) path.erase(0, root.size() + 1);
    found.lines.push_back(path + ":" + fields[i + 1] + ":" + fields[i + 2]);
  }
  EXPECT_EQ(found.report.matches, found.lines.size());
  return found;
}

struct GrepTest : testing::Test {
  TempTree tree;
};

TEST_F(GrepTest, LiteralLinesSortedByPath) {
  tree.make("b.txt", "one\nstr | int\nthree str | int str | int\nlast str | int");
  tree.make("a/x", "str | int\n");
  tree.make("a.x", "$100 [a-z]*\n");
  EXPECT_THAT(search(tree.root(), "str | int").lines,
              ElementsAre("a/x:1:str | int", "b.txt:2:str | int",
                          "b.txt:3:three str | int str | int", "b.txt:4:last str | int"));
  EXPECT_THAT(search(tree.root(), "[a-z]*").lines, ElementsAre("a.x:1:$100 [a-z]*"));
  EXPECT_THAT(search(tree.root(), "STR").lines, IsEmpty());
}

TEST_F(GrepTest, ColonsAndOddNames) {
  tree.make("log_2026:06:06_30:1.txt", "30:x:y\n");
  tree.make("new\nline", "30:\n");
  EXPECT_THAT(search(tree.root(), "30:").lines,
              ElementsAre("log_2026:06:06_30:1.txt:1:30:x:y", "new\nline:1:30:"));
}

TEST_F(GrepTest, NulAndBadBytesHideNothing) {
  tree.make("n", std::string("hello\0w\nmatch line\n", 19));
  tree.make("same", std::string("x\0match\n", 8));
  tree.make("u", "bad \xFF match\n");
  EXPECT_THAT(search(tree.root(), "match").lines,
              ElementsAre("n:2:match line", "same:1:x\xEF\xBF\xBDmatch", "u:1:bad \xFF match"));
}

TEST_F(GrepTest, CarriageReturnStays) {
  tree.make("f", "a\r\nb\r\n");
  EXPECT_THAT(search(tree.root(), "b").lines, ElementsAre("f:2:b\r"));
}

TEST_F(GrepTest, PatternOfSeveralLinesAndEmptyPattern) {
  tree.make("f", "one\ntwo\n\nthree");
  EXPECT_THAT(search(tree.root(), "three\none").lines, ElementsAre("f:1:one", "f:4:three"));
  EXPECT_THAT(search(tree.root(), "two\n").lines, ElementsAre("f:2:two"));
  EXPECT_THAT(search(tree.root(), "").lines,
              ElementsAre("f:1:one", "f:2:two", "f:3:", "f:4:three"));
  tree.make("empty", "");
  EXPECT_EQ(search(tree.root(), "").lines.size(), 4U);
}

TEST_F(GrepTest, GlobFilter) {
  tree.make("a.py", "x\n");
  tree.make("s/b.py", "x\n");
  tree.make("s/t/c.py", "x\n");
  tree.make(".h/d.py", "x\n");
  tree.make(".e.py", "x\n");
  tree.make("f.txt", "x\n");
  GrepOptions options;
  options.glob = "*.py";
  EXPECT_THAT(search(tree.root(), "x", options).lines,
              ElementsAre(".e.py:1:x", ".h/d.py:1:x", "a.py:1:x", "s/b.py:1:x", "s/t/c.py:1:x"));
  options.glob = "s/**/*.py";
  EXPECT_THAT(search(tree.root(), "x", options).lines, ElementsAre("s/b.py:1:x", "s/t/c.py:1:x"));
  options.glob = "/*.{py,txt}";
  EXPECT_THAT(search(tree.root(), "x", options).lines, ElementsAre("a.py:1:x", "f.txt:1:x"));
  options.glob = "../*.py";
  EXPECT_EQ(search(tree.root(), "x", options).error, "invalid_pattern");
}

TEST_F(GrepTest, ExcludedDirectories) {
  tree.make(".git/config", "x\n");
  tree.make("s/.git/config", "x\n");
  tree.make("s/f", "x\n");
  GrepOptions options;
  options.exclude_dirs = {".git"};
  EXPECT_THAT(search(tree.root(), "x", options).lines, ElementsAre("s/f:1:x"));
  EXPECT_THAT(search(tree.at(".git"), "x", options).lines, ElementsAre("config:1:x"));
}

TEST_F(GrepTest, SingleFile) {
  const std::string path = tree.make("f.py", "a\nx\n");
  EXPECT_THAT(search(path, "x").lines, ElementsAre(path + ":2:x"));
  GrepOptions options;
  options.glob = "*.txt";
  EXPECT_THAT(search(path, "x", options).lines, IsEmpty());
  options.glob = "src/*.txt";
  EXPECT_EQ(search(path, "x", options).lines.size(), 1U);
  EXPECT_EQ(search(tree.fifo("p"), "x").error, "not_a_file");
  EXPECT_EQ(search(tree.at("none"), "x").error, "file_not_found");
  EXPECT_EQ(search(tree.make("locked", "x", 0), "x").error, "permission_denied");
}

TEST_F(GrepTest, MaxCountIsExact) {
  tree.make("a", "x\nx\n");
  tree.make("b", "x\n");
  GrepOptions options;
  options.max_count = 3;
  EXPECT_FALSE(search(tree.root(), "x", options).report.truncated);
  options.max_count = 2;
  auto found = search(tree.root(), "x", options);
  EXPECT_THAT(found.lines, ElementsAre("a:1:x", "a:2:x"));
  EXPECT_TRUE(found.report.truncated);
  options.max_count = 0;
  found = search(tree.root(), "x", options);
  EXPECT_THAT(found.lines, IsEmpty());
  EXPECT_TRUE(found.report.truncated);
}

TEST_F(GrepTest, LineNumbersOverManyBlocks) {
  std::string content;
  std::vector<std::string> expected;
  for (int i = 1; i <= 60'000; ++i) {
    const bool hit = i % 7919 == 0 || i == 60'000;
    content += hit ? "needle" : "some other text";
    content += " in line " + std::to_string(i) + "\n";
    if (hit) expected.push_back("f:" + std::to_string(i) + ":needle in line " + std::to_string(i));
  }
  tree.make("f", content);
  EXPECT_EQ(search(tree.root(), "needle").lines, expected);
}

TEST_F(GrepTest, HugeLines) {
  // Long before, long behind, and over every place where a block may end.
  for (const std::size_t before : {1'000UL, 260'000UL, 294'909UL, 327'677UL, 900'000UL}) {
    const std::string line = std::string(before, 'a') + "needle" + std::string(1'000'000, 'b');
    tree.make("f", "first\n" + line + " needle\nlast needle\n");
    const Found found = search(tree.root(), "needle");
    ASSERT_EQ(found.lines.size(), 2U) << before;
    EXPECT_THAT(found.lines[0], testing::StartsWith("f:2:a"));
    EXPECT_THAT(found.lines[0], testing::HasSubstr("needle"));
    EXPECT_LE(found.lines[0].size(), kGrepTextCap + 4);
    EXPECT_EQ(found.lines[1], "f:3:last needle");
  }
}

TEST_F(GrepTest, ExcerptsAreWholeCharacters) {
  std::string euros;
  while (euros.size() < 300'000) euros += "\xE2\x82\xAC";
  for (const char* shift : {"", "a", "ab"}) {
    tree.make("f", shift + euros + "needle" + euros + "\n");
    const Found found = search(tree.root(), "needle");
    ASSERT_EQ(found.lines.size(), 1U);
    const std::string text = found.lines[0].substr(4);
    EXPECT_THAT(text, testing::StartsWith("\xE2\x82\xAC"));
    EXPECT_THAT(text, testing::EndsWith("\xE2\x82\xAC"));
    EXPECT_EQ((text.size() - 6) % 3, 0U);
  }
}

TEST_F(GrepTest, SpecialFilesAndLinksAreLeftOut) {
  tree.make("f", "x\n");
  tree.fifo("p");
  tree.link("zero", "/dev/zero");
  tree.link("link", "f");
  tree.link("loop", ".");
  const auto start = std::chrono::steady_clock::now();
  const Found found = search(tree.root(), "x");
  EXPECT_THAT(found.lines, ElementsAre("f:1:x"));
  EXPECT_EQ(found.report.unreadable, 0U);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(1));
}

TEST_F(GrepTest, SparseFileOf200GigabytesTakesNoTime) {
  const std::string path = tree.make("big", "needle\n");
  ASSERT_EQ(::truncate(path.c_str(), 200'000'000'000), 0);
  const int fd = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
  ASSERT_EQ(::pwrite(fd, "\nneedle 3\n", 10, 150'000'000'000), 10);
  ::close(fd);
  const auto start = std::chrono::steady_clock::now();
  EXPECT_THAT(search(tree.root(), "needle").lines, ElementsAre("big:1:needle", "big:3:needle 3"));
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
}

TEST_F(GrepTest, UnreadableIsCounted) {
  tree.make("locked", "x\n", 0);
  EXPECT_EQ(search(tree.root(), "x").report.unreadable, 1U);
  EXPECT_EQ(unprivileged([&] {
              tree.make("d/f", "x\n");
              ::chmod(tree.at("d").c_str(), 0);
              return std::to_string(search(tree.root(), "x").report.walk_errors);
            }),
            "1");
}

TEST_F(GrepTest, ShownRoot) {
  tree.make("d/f", "x\n");
  GrepOptions options;
  options.shown_root = "/d/";
  EXPECT_THAT(search(tree.at("d"), "x", options).lines, ElementsAre("/d/f:1:x"));
  options.shown_root = "/d/f";
  EXPECT_THAT(search(tree.at("d/f"), "x", options).lines, ElementsAre("/d/f:1:x"));
  options.shown_root = "/";
  EXPECT_THAT(search(tree.at("d"), "x", options).lines, ElementsAre("/f:1:x"));
}

TEST_F(GrepTest, CancelAndBudget) {
  tree.make("f", "x\n");
  std::stop_source source;
  source.request_stop();
  EXPECT_EQ(grep(
                tree.root(), "x", {}, [](std::string_view) { return true; }, source.get_token())
                .error()
                .code,
            Code::cancelled);
  EXPECT_EQ(grep(tree.root(), "x", {}, [](std::string_view) { return false; }).error().code,
            Code::cancelled);
  tree.make("many", [] {
    std::string lines;
    while (lines.size() < 60'000'000) lines += "no such text in here\n";
    return lines;
  }());
  GrepOptions options;
  options.budget = std::chrono::milliseconds(1);
  EXPECT_TRUE(search(tree.root(), "here\nno", options).report.truncated);
}

}  // namespace
}  // namespace sandy::files
