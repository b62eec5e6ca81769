#include "agent/files/utf8.h"

#include <gtest/gtest.h>

namespace sandy::files {
namespace {

std::string repaired(std::string_view text, bool drop_cut = false) {
  std::string out;
  append_repaired(out, text, drop_cut);
  return out;
}

TEST(Utf8, WellFormed) {
  for (const char* text :
       {"", "plain text, long enough", "\xC2\x80", "\xE0\xA0\x80", "\xED\x9F\xBF", "\xEE\x80\x80",
        "\xF0\x90\x80\x80", "\xF4\x8F\xBF\xBF"}) {
    EXPECT_TRUE(is_utf8(text)) << text;
  }
  EXPECT_EQ(utf8_step("\xF0\x9F\x98\x80").code_point, U'\U0001F600');
}

TEST(Utf8, IllFormed) {
  for (const char* text :
       {"\x80", "\xC0\x80", "\xC1\xBF", "\xE0\x9F\xBF", "\xED\xA0\x80", "\xF0\x8F\xBF\xBF",
        "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xFF", "\xC3\x28", "twelve bytes\xFF"}) {
    EXPECT_FALSE(is_utf8(text, true)) << text;
  }
}

TEST(Utf8, CutAtTheEnd) {
  EXPECT_FALSE(is_utf8("a\xE2\x82"));
  EXPECT_TRUE(is_utf8("a\xE2\x82", true));
  EXPECT_FALSE(is_utf8("\xE2\x82 a", true));
  EXPECT_EQ(repaired("a\xE2\x82"), "a\xEF\xBF\xBD");
  EXPECT_EQ(repaired("a\xE2\x82", true), "a");
}

// As Python's errors="replace": one mark for each maximal part.
TEST(Utf8, Repair) {
  EXPECT_EQ(repaired("a\xFF\xF0\x62"),
            "a\xEF\xBF\xBD\xEF\xBF\xBD"
            "b");
  EXPECT_EQ(repaired("\xE2\x82"
                     "x"),
            "\xEF\xBF\xBD"
            "x");
  EXPECT_EQ(repaired("\xED\xA0\x80"), "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD");
  EXPECT_EQ(repaired("h\xC3\xA9llo, a long text"), "h\xC3\xA9llo, a long text");
}

TEST(Utf8, Prefix) {
  EXPECT_EQ(utf8_prefix("abc", 5), "abc");
  EXPECT_EQ(utf8_prefix("a\xE2\x82\xAC", 3), "a");
  EXPECT_EQ(utf8_prefix("a\xE2\x82\xAC", 4), "a\xE2\x82\xAC");
  EXPECT_EQ(utf8_prefix("\xE2\x82\xAC", 0), "");
}

}  // namespace
}  // namespace sandy::files
