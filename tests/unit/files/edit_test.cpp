#include "agent/files/edit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "temp_tree.h"

namespace sandy::files {
namespace {

using testing::ElementsAre;

// The text, or the word of the error in "<>".
std::string replaced(std::string_view text, std::string_view from, std::string_view to,
                     bool all = false) {
  auto got = replace(text, from, to, all);
  return got ? got->text : "<" + std::string(word(got.error().code)) + ">";
}

TEST(Replace, AsSent) {
  EXPECT_EQ(replaced("one two", "two", "2"), "one 2");
  EXPECT_EQ(replaced("aaa", "aa", "b", true), "ba");  // counted without overlap
  EXPECT_EQ(replace("aaaa", "aa", "b", true)->occurrences, 2U);
  EXPECT_EQ(replaced("x$100.00 [a-z]*", "[a-z]*", "[0-9]+"), "x$100.00 [0-9]+");
  EXPECT_EQ(replaced("gone", "gone", ""), "");
}

TEST(Replace, NeedsOneOccurrenceOrAll) {
  EXPECT_EQ(replaced("a b a", "a", "c"), "<multiple_occurrences>");
  EXPECT_EQ(replace("a b a", "a", "c", false).error().count, 2U);
  EXPECT_EQ(replaced("a b a", "a", "c", true), "c b c");
  EXPECT_EQ(replaced("a b a", "x", "c", true), "<string_not_found>");
}

TEST(Replace, EmptyAndSameStrings) {
  EXPECT_EQ(replaced("abc", "", "X", true), "<empty_old_string>");
  EXPECT_EQ(replaced("abc", "", "X"), "<empty_old_string>");
  EXPECT_EQ(replaced("", "", "X"), "<empty_old_string>");
  EXPECT_EQ(replaced("abc", "b", "b"), "<no_change>");
}

TEST(Replace, LineEndsOfTheTextAreKept) {
  EXPECT_EQ(replaced("a\r\nb\r\nc\r\n", "a\nb", "X\nY"), "X\r\nY\r\nc\r\n");
  EXPECT_EQ(replaced("a\nb\nc\n", "a\r\nb", "X\r\nY"), "X\nY\nc\n");
  // Mixed: the form that was sent comes first.
  EXPECT_EQ(replaced("a\nb\n---\r\na\r\nb\r\n", "a\nb", "c\nd", true), "c\nd\n---\r\na\r\nb\r\n");
  // A lone CR is data.
  EXPECT_EQ(replaced("p\rq\nr\n", "r", "s"), "p\rq\ns\n");
  // Within a line, where all line ends are CRLF.
  EXPECT_EQ(replaced("a\r\nb\r\n", "a", "x\ny"), "x\r\ny\r\nb\r\n");
  EXPECT_EQ(replaced("a\r\nb\r\n", "\nb", "\nx\ny"), "a\r\nx\r\ny\r\n");
  EXPECT_EQ(replaced("a\r\nb\n", "a", "x\ny"), "x\ny\r\nb\n");
}

TEST(Replace, OnlyText) {
  EXPECT_EQ(replaced("a\xFF"
                     "b",
                     "a", "c"),
            "<not_a_text_file>");
  // These bytes are in the text, but no characters of it.
  EXPECT_EQ(replaced("\xE2\x82\xAC", "\x82", "x"), "<not_a_text_file>");
  EXPECT_EQ(replaced("abc", "b", "\xC3"), "<not_a_text_file>");
  EXPECT_EQ(replaced(std::string("a\0b", 3), "b", "c"), std::string("a\0c", 3));
}

TEST(Replace, ResultIsBounded) {
  const std::string text(1'000'000, 'a');
  EXPECT_EQ(replaced(text, "a", std::string(1'000'000, 'b'), true), "<too_large>");
}

struct EditTest : testing::Test {
  TempTree tree;

  std::string run(std::string_view name, std::string_view from, std::string_view to,
                  bool all = false) {
    auto got = edit(tree.at(name), from, to, all);
    return got ? std::to_string(*got) : std::string(word(got.error().code));
  }
};

TEST_F(EditTest, KeepsModeAndTheOtherBytes) {
  tree.make("f",
            "\xEF\xBB\xBF"
            "head\r\nbody\rx\n",
            0755);
  EXPECT_EQ(run("f", "body", "BODY"), "1");
  EXPECT_EQ(tree.content("f"),
            "\xEF\xBB\xBF"
            "head\r\nBODY\rx\n");
  EXPECT_EQ(tree.mode("f"), 0755U);
  EXPECT_THAT(tree.names(), ElementsAre("f"));
}

TEST_F(EditTest, ThroughALinkAndOnAHardLink) {
  tree.make("target", "old");
  tree.link("link", "target");
  EXPECT_EQ(run("link", "old", "new"), "1");
  EXPECT_TRUE(std::filesystem::is_symlink(tree.at("link")));
  EXPECT_EQ(tree.content("target"), "new");
  ASSERT_EQ(::link(tree.at("target").c_str(), tree.at("hard").c_str()), 0);
  EXPECT_EQ(run("hard", "new", "newest"), "1");
  EXPECT_EQ(tree.content("target"), "newest");
  EXPECT_EQ(tree.inode("target"), tree.inode("hard"));
}

TEST_F(EditTest, ErrorsLeaveTheFileAsItWas) {
  tree.make("f", "a a", 0644);
  tree.make("locked", "a", 0444);
  tree.make("bytes",
            "\xFF"
            "a");
  tree.make("empty", "");
  const ino_t inode = tree.inode("f");
  EXPECT_EQ(run("f", "", "X", true), "empty_old_string");
  EXPECT_EQ(run("empty", "", "X"), "empty_old_string");
  EXPECT_EQ(run("none", "", "X"), "empty_old_string");
  EXPECT_EQ(run("empty", "a", "X"), "string_not_found");
  EXPECT_EQ(run("f", "a", "a", true), "no_change");
  EXPECT_EQ(run("f", "a", "b"), "multiple_occurrences");
  EXPECT_EQ(run("none", "a", "b"), "file_not_found");
  EXPECT_EQ(run("locked", "a", "b"), "permission_denied");
  EXPECT_EQ(run("bytes", "a", "b"), "not_a_text_file");
  EXPECT_EQ(run(".", "a", "b"), "not_a_file");
  tree.fifo("p");
  EXPECT_EQ(run("p", "a", "b"), "not_a_file");
  EXPECT_EQ(tree.inode("f"), inode);
  EXPECT_EQ(tree.content("f"), "a a");
  EXPECT_EQ(tree.content("locked"), "a");
  EXPECT_THAT(tree.names(), ElementsAre("bytes", "empty", "f", "locked", "p"));
}

TEST_F(EditTest, LargeStrings) {
  const std::string from(200'000, 'o');
  const std::string to(200'000, 'n');
  tree.make("f", "head\n" + from + "\ntail\n");
  EXPECT_EQ(run("f", from, to), "1");
  EXPECT_EQ(tree.content("f"), "head\n" + to + "\ntail\n");
  EXPECT_THAT(tree.names(), ElementsAre("f"));
}

TEST_F(EditTest, HugeFilesAreRefusedByTheirSize) {
  tree.make("big", "");
  ASSERT_EQ(::truncate(tree.at("big").c_str(), 200'000'000'000), 0);
  EXPECT_EQ(run("big", "a", "b"), "too_large");
}

TEST_F(EditTest, TwoFilesAtOnce) {
  tree.make("a", "x" + std::string(100'000, '.'));
  tree.make("b", "x" + std::string(100'000, '.'));
  std::thread other([&] { EXPECT_EQ(run("a", "x", "y"), "1"); });
  EXPECT_EQ(run("b", "x", "z"), "1");
  other.join();
  EXPECT_EQ(tree.content("a")[0], 'y');
  EXPECT_EQ(tree.content("b")[0], 'z');
}

TEST_F(EditTest, Cancel) {
  tree.make("f", "a");
  std::stop_source source;
  source.request_stop();
  EXPECT_EQ(edit(tree.at("f"), "a", "b", false, source.get_token()).error().code, Code::cancelled);
  EXPECT_EQ(tree.content("f"), "a");
}

}  // namespace
}  // namespace sandy::files
