#include "agent/files/glob_match.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

namespace sandy::files {
namespace {

using testing::ElementsAre;

bool matches(std::string_view pattern, std::string_view path) {
  auto compiled = GlobPattern::compile(pattern);
  return compiled && compiled->matches(path);
}

struct Row {
  const char* pattern;
  const char* path;
  bool match;
};

TEST(GlobMatch, Table) {
  const Row rows[] = {
      // Without "/": the last component, at any depth.
      {"*.py", "a.py", true},
      {"*.py", "s/b.py", true},
      {"*.py", ".h/c.py", true},
      {"*.py", ".d.py", false},
      {".*", ".d.py", true},
      {".*.py", "x/.d.py", true},
      {"*", "a", true},
      {"*", ".a", false},
      {"**", "x/a", true},
      {"a", "b/a", true},
      {"a", "a/b", false},
      // With "/": the whole path.
      {"/*.py", "a.py", true},
      {"/*.py", "s/b.py", false},
      {"s/*.py", "s/b.py", true},
      {"s/*.py", "s/t/b.py", false},
      {"s/*.py", "x/s/b.py", false},
      {"s//*.py", "s/b.py", true},
      {"**/*.py", "a.py", true},
      {"**/*.py", "s/t/b.py", true},
      {"**/*.py", ".h/c.py", false},
      {"**/*.py", "s/.d.py", false},
      {".h/**/*.py", ".h/x/c.py", true},
      {"**/.h/*.py", "a/.h/c.py", true},
      {"s/**", "s/a/b", true},
      {"s/**", "s", false},
      {"s/**", "s/.a", false},
      {"s/**/**/b", "s/b", true},
      {"a.py/**", "a.py", false},
      {"**/", "a/b", true},
      {"s/", "s", false},
      {"*/", "a", false},
      {"**/a/**/b", "x/a/y/z/b", true},
      {"**/a/**/b", "x/a/y/z/c", false},
      {"a**b/c", "axxb/c", true},
      {"/", "a", false},
      // Classes.
      {"[ab].c", "a.c", true},
      {"[ab].c", "c.c", false},
      {"[!ab].c", "c.c", true},
      {"[^ab].c", "a.c", false},
      {"[^ab].c", "c.c", true},
      {"[a-c]x", "bx", true},
      {"[a-c]x", "dx", false},
      {"[c-a]x", "bx", false},
      {"[!c-a]x", "bx", true},
      {"[a-]x", "-x", true},
      {"[]a]x", "]x", true},
      {"[!]a]x", "]x", false},
      {"[^]a]x", "bx", true},
      {"[a-c-e]x", "-x", true},
      {"[a-c-e]x", "dx", false},
      {"[a", "[a", true},
      {"[!", "[!", true},
      {"a[]b", "a[]b", true},
      // Characters, not bytes; a bad byte is one.
      {"?", "\xC3\xA9", true},
      {"??", "\xC3\xA9", false},
      {"[\xC3\xA0-\xC3\xBF]", "\xC3\xA9", true},
      {"?", "\xFF", true},
      {"\xFF", "\xFF", true},
      {"a?b", "a\nb", true},
      // A backslash is a character.
      {"\\*", "\\x", true},
      {"\\*", "*", false},
      // Braces.
      {"*.{py,txt}", "a.txt", true},
      {"*.{py,txt}", "a.c", false},
      {"*.{p{y,l},txt}", "a.pl", true},
      {"{a}", "{a}", true},
      {"{a}", "a", false},
      {"{a", "{a", true},
      {"a}", "a}", true},
      {"{a,}b", "b", true},
      {"{s/x,t}/*.py", "s/x/b.py", true},
      {"{s/x,t}/*.py", "t/b.py", true},
      {"{a/b,c}", "x/c", false},
      {"{a/b,c}", "c", true},
      {"", "a", false},
  };
  for (const Row& row : rows) {
    EXPECT_EQ(matches(row.pattern, row.path), row.match) << row.pattern << " on " << row.path;
  }
}

TEST(GlobMatch, DotsAreOrdinaryForGrepsInclude) {
  auto pattern = GlobPattern::compile("*.py", GlobPattern::Dots::are_ordinary);
  ASSERT_TRUE(pattern);
  EXPECT_TRUE(pattern->matches(".d.py"));
  pattern = GlobPattern::compile("s/*.py", GlobPattern::Dots::are_ordinary);
  ASSERT_TRUE(pattern);
  EXPECT_FALSE(pattern->matches("s/.d.py"));
}

TEST(GlobMatch, TraversalIsRefused) {
  for (const char* pattern : {"..", "../x", "a/../b", "a/..", "..\\x"}) {
    auto compiled = GlobPattern::compile(pattern);
    ASSERT_FALSE(compiled) << pattern;
    EXPECT_EQ(compiled.error().code, Code::invalid_pattern);
  }
  EXPECT_TRUE(GlobPattern::compile("a..b/...").has_value());
}

TEST(Braces, Order) {
  EXPECT_THAT(*expand_braces("x{a,b{1,2}}y{c,d}"),
              ElementsAre("xayc", "xayd", "xb1yc", "xb1yd", "xb2yc", "xb2yd"));
  EXPECT_THAT(*expand_braces("{a}{b,c}"), ElementsAre("{a}b", "{a}c"));
  EXPECT_THAT(*expand_braces("{{a,b}}"), ElementsAre("{{a,b}}"));
  EXPECT_THAT(*expand_braces("{x{a,b}"), ElementsAre("{x{a,b}"));
  EXPECT_THAT(*expand_braces("{,a}"), ElementsAre("", "a"));
}

TEST(Braces, AreBounded) {
  std::string thousand = "{";
  for (int i = 0; i < 999; ++i) thousand += "a,";
  EXPECT_EQ(expand_braces(thousand + "a}")->size(), 1000U);
  EXPECT_EQ(expand_braces(thousand + "a,a}").error().code, Code::pattern_too_broad);
  std::string product;
  for (int i = 0; i < 64; ++i) product += "{a,b}";
  EXPECT_EQ(expand_braces(product).error().code, Code::pattern_too_broad);
  std::string nested;
  for (int i = 0; i < 5000; ++i) nested += "{a,";
  EXPECT_EQ(expand_braces(nested + std::string(5000, '}')).error().code, Code::pattern_too_broad);
  EXPECT_EQ(expand_braces(std::string(1'000'000, '{')).error().code, Code::pattern_too_broad);
}

TEST(GlobMatch, BacktrackingIsBounded) {
  const auto start = std::chrono::steady_clock::now();
  std::string path;
  std::string pattern;
  for (int i = 0; i < 60; ++i) {
    path += "a/";
    pattern += "**/a/";
  }
  EXPECT_FALSE(matches(pattern + "b", path + "c"));
  EXPECT_FALSE(matches("**/*a*a*a*a*a*a*a*a*b", path + std::string(250, 'a')));
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(2));
}

}  // namespace
}  // namespace sandy::files
