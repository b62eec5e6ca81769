#include "policy/json_tree.h"

#include "policy_testing.h"

namespace sandy::policy {
namespace {

using testing::HasSubstr;

Error refused(std::string_view text, const JsonLimits& limits = {}) {
  const auto tree = parse_json(text, "policy", limits);
  return tree ? Error{"accepted", std::string(text), ""} : tree.error();
}

TEST(ParseJson, BuildsTheTree) {
  const auto tree =
      parse_json(R"({"a": [1, -2, 2.50, 1e3, "x\né", true, null], "b": {}})", "policy");
  ASSERT_TRUE(tree) << tree.error().text();
  const auto& object = *tree->as<JsonValue::Object>();
  ASSERT_EQ(object.size(), 2U);
  EXPECT_EQ(object[0].first, "a");
  const auto& array = *object[0].second.as<JsonValue::Array>();
  ASSERT_EQ(array.size(), 7U);
  EXPECT_EQ(array[0].as<JsonNumber>()->text, "1");
  EXPECT_TRUE(array[0].as<JsonNumber>()->integer);
  EXPECT_EQ(array[1].as<JsonNumber>()->text, "-2");
  EXPECT_EQ(array[2].as<JsonNumber>()->text, "2.5");
  EXPECT_FALSE(array[2].as<JsonNumber>()->integer);
  EXPECT_EQ(array[3].as<JsonNumber>()->text, "1000");
  EXPECT_TRUE(array[3].as<JsonNumber>()->integer);
  EXPECT_EQ(*array[4].as<std::string>(), "x\n\xc3\xa9");
  EXPECT_TRUE(*array[5].as<bool>());
  EXPECT_NE(array[6].as<std::nullptr_t>(), nullptr);
  EXPECT_TRUE(object[1].second.as<JsonValue::Object>()->empty());
}

TEST(ParseJson, SyntaxErrorsHaveLineAndColumn) {
  EXPECT_EQ(refused("{\n  \"a\": 1,\n  x\n}").what, "policy: line 3, column 3");
  EXPECT_FALSE(refused("{\n x").why.empty());
  EXPECT_EQ(refused("").text(), "policy: is empty");
  for (const char* text : {" ",   "{",    "[1,]",     "{\"a\":1,}", "{\"a\" 1}", "{'a': 1}",
                           "01", "1 2", "{} x", "// c\n{}", "{/**/}",     "NaN",       "Infinity",
                           "-",  "+1",  ".5",   "1.",       "\"\t\"",     "\"\\x\"",   "tru"}) {
    EXPECT_TRUE(refused(text).what.starts_with("policy: line "))
        << text << ": " << refused(text).text();
  }
}

TEST(ParseJson, RefusesWhatIsNotUnicode) {
  for (const char* text : {"\"\xff\"", "\"\xc0\xaf\"", "\"\xed\xa0\x80\"", "\"\xf4\x90\x80\x80\"",
                           "\"\xe2\x82\"", "\"\\ud800\"", "\"\\udc00x\"", "\"\\ud800\\u0041\""}) {
    EXPECT_TRUE(refused(text).what.starts_with("policy: line 1")) << refused(text).text();
    EXPECT_EQ(printable(refused(text).why), refused(text).why);
  }
}

TEST(ParseJson, RefusesDuplicateKeysInAnySpelling) {
  EXPECT_EQ(refused(R"({"a": 1, "a": 2})").text(), "a: the key stands there twice");
  EXPECT_EQ(refused(R"({"x": {"ab": 1, "\u0061b": 1}})").what, "x.ab");
  EXPECT_TRUE(parse_json(R"({"a": {"b": 1}, "b": {"a": 1}})", "policy"));
}

TEST(ParseJson, RefusesNumbersThatOverflow) {
  EXPECT_THAT(refused("1e400").why, HasSubstr("overflow"));
  EXPECT_THAT(refused(std::string(5000, '9')).why, HasSubstr("overflow"));
  EXPECT_LT(refused(std::string(500'000, '9')).text().size(), 400U);
  EXPECT_THAT(parse_json("5e-324", "p")->as<JsonNumber>()->text, testing::StartsWith("0.000"));
  EXPECT_EQ(parse_json("18446744073709551615", "p")->as<JsonNumber>()->text,
            "18446744073709551615");
  EXPECT_EQ(parse_json("1e308", "p")->as<JsonNumber>()->text.size(), 309U);
}

TEST(ParseJson, RefusesNul) {
  EXPECT_THAT(refused(R"({"a": ["b", "c\u0000d"]})").text(),
              HasSubstr("a[1]: a string with a NUL"));
  EXPECT_THAT(refused(R"({"a\u0000": 1})").text(), HasSubstr("NUL"));
}

TEST(ParseJson, HoldsItsLimits) {
  const auto nested = [](std::size_t depth) {
    return std::string(depth, '[') + std::string(depth, ']');
  };
  EXPECT_TRUE(parse_json(nested(16), "p"));
  EXPECT_THAT(refused(nested(17)).why, HasSubstr("deeper than 16"));
  EXPECT_THAT(refused(std::string(500'000, '[')).why, HasSubstr("deeper than 16"));
  EXPECT_TRUE(parse_json("\"" + std::string(65'536, 'x') + "\"", "p"));
  EXPECT_THAT(refused("\"" + std::string(65'537, 'x') + "\"").why, HasSubstr("65536 bytes"));
  EXPECT_THAT(refused("{\"" + std::string(65'537, 'x') + "\": 1}").why, HasSubstr("65536 bytes"));
  EXPECT_THAT(refused("[1, 2, 3]", {.values = 3}).text(), HasSubstr("more than 3 values"));
  EXPECT_TRUE(parse_json("[1, 2]", "p", {.values = 3}));
  EXPECT_EQ(refused(std::string(1024 * 1024 + 1, ' ')).text(), "policy: larger than 1048576 bytes");
  // Many keys cost no more than many: each object has its own set.
  std::string keys = "{";
  for (int i = 0; i < 30'000; ++i) keys += "\"" + std::to_string(i) + "\":0,";
  EXPECT_TRUE(parse_json(keys + "\"x\":0}", "p"));
}

TEST(Keys, AreEscapedAndCut) {
  EXPECT_EQ(child_key("", "a"), "a");
  EXPECT_EQ(child_key("a", "b_1"), "a.b_1");
  EXPECT_EQ(child_key("a", ""), "a.\"\"");
  EXPECT_EQ(child_key("a", "b.c"), "a.\"b.c\"");
  EXPECT_EQ(child_key("a", "\x1b[0m"), "a.\"\\x1b[0m\"");
  EXPECT_LT(child_key("a", std::string(60'000, 'k')).size(), 80U);
  EXPECT_EQ(item_key("a.b", 3), "a.b[3]");
}

}  // namespace
}  // namespace sandy::policy
