#include "session/wire/frame.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>

namespace sandy::wire {
namespace {

std::string prefix(std::uint32_t header, std::uint32_t payload) {
  std::string out;
  for (const std::uint32_t value : {header, payload}) {
    for (int i = 0; i < 4; ++i) out += static_cast<char>(value >> (8 * i) & 0xFF);
  }
  return out;
}

TEST(Sizes, AreCheckedBeforeAnythingIsAllocated) {
  struct Row {
    std::uint32_t header, payload;
    std::size_t max_payload;
    bool ok;
  };
  for (const Row& row : {Row{2, 0, 0, true}, Row{1, 0, 0, false}, Row{0, 0, 0, false}, Row{65'536, 0, 0, true}, Row{65'537, 0, 0, false},
                         Row{0xFFFFFFFF, 0, 0, false}, Row{2, 1'048'576, kMaxReplyPayload, true}, Row{2, 1'048'577, kMaxReplyPayload, false},
                         Row{2, 67'108'864, kMaxRequestPayload, true}, Row{2, 67'108'865, kMaxRequestPayload, false},
                         Row{2, 0xFFFFFFFF, kMaxRequestPayload, false}, Row{0x80000002, 0, kMaxRequestPayload, false}}) {
    const auto sizes = read_sizes(prefix(row.header, row.payload), row.max_payload);
    ASSERT_EQ(sizes.has_value(), row.ok) << row.header << " " << row.payload;
    if (!sizes) continue;
    EXPECT_EQ(sizes->header, row.header);
    EXPECT_EQ(sizes->payload, row.payload);
  }
}

TEST(Sizes, AreLittleEndian) {
  const auto sizes = read_sizes(std::string("\x02\x01\x00\x00\x04\x03\x00\x00", 8), kMaxReplyPayload);
  ASSERT_TRUE(sizes);
  EXPECT_EQ(sizes->header, 0x0102U);
  EXPECT_EQ(sizes->payload, 0x0304U);
}

TEST(Header, AnObjectWithAnId) {
  const auto frame = parse_header(R"({"id": 4294967295, "op": "exec", "n": 7, "f": true})");
  ASSERT_TRUE(frame) << frame.error().text();
  EXPECT_EQ(frame->id, 4294967295U);
  EXPECT_EQ(frame->op(), "exec");
  EXPECT_EQ(frame->ev(), "");
  EXPECT_EQ(frame->number("n", 1), 7U);
  EXPECT_EQ(frame->number("f", 1), 1U);
  EXPECT_TRUE(frame->flag("f", false));
  EXPECT_TRUE(frame->flag("n", true));
  EXPECT_EQ(frame->word("n"), "");
}

TEST(Header, NumbersAreUnsignedIntegers) {
  const auto frame = parse_header(R"({"id": 1, "negative": -1, "real": 1.0, "big": 18446744073709551615, "bigger": 18446744073709551616, "text": "1"})");
  ASSERT_TRUE(frame);
  EXPECT_EQ(frame->number("negative", 9), 9U);
  EXPECT_EQ(frame->number("real", 9), 9U);
  EXPECT_EQ(frame->number("big", 9), std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(frame->number("bigger", 9), 9U);
  EXPECT_EQ(frame->number("text", 9), 9U);
  EXPECT_EQ(frame->number("absent", 9), 9U);
}

TEST(Header, Refused) {
  for (const std::string text : {
           "", "{", "[]", "1", "null", "\"x\"", "{}", R"({"op": "exec"})", R"({"id": "1"})", R"({"id": -1})", R"({"id": 1.5})", R"({"id": 1e0})",
           R"({"id": 4294967296})", R"({"id": null})", R"({"id": [1]})", R"({"id": 1} x)", R"({"id": 1}{"id": 1})", R"({"id": 1,})", R"({"id": 01})",
           R"({"id": 1, "id": 1})", R"({"id": 1, "op": "a", "op": "b"})", R"({"id": 1, "a": {"b": 1, "b": 2}})", R"({"id": 1, "a": [{"b": 1, "b": 2}]})",
           R"({"id": 1, "a": 1, "\u0061": 2})",  // the same key, written in another way
           R"({"id": 1, "a": NaN})", R"({"id": 1, 'a': 1})", R"({"id": 1} // comment)",
       }) {
    EXPECT_FALSE(parse_header(text)) << text;
  }
  EXPECT_FALSE(parse_header(std::string_view("{\"id\": 1}\0", 10)));
  EXPECT_FALSE(parse_header(std::string_view("{\"id\": 1}\0 and more", 19)));
  for (const char* bytes : {"\xff", "\xc0\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xe2\x82", "\x01"}) {
    EXPECT_FALSE(parse_header(std::string(R"({"id": 1, "op": ")") + bytes + "\"}"));
  }
}

std::string nested(int depth, const char* open, const char* inner, const char* close) {
  std::string out;
  for (int i = 0; i < depth; ++i) out += open;
  out += inner;
  for (int i = 0; i < depth; ++i) out += close;
  return out;
}

TEST(Header, NestingIsLimited) {
  // The header's own object is one level.
  for (const auto& [open, inner, close] : {std::tuple{"[", "", "]"}, std::tuple{"[", "1", "]"}, std::tuple{"{\"a\":", "1", "}"}, std::tuple{"{\"a\":", "{}", "}"}}) {
    const int own = std::string(inner) == "{}" ? 1 : 0;
    EXPECT_TRUE(parse_header("{\"id\": 1, \"x\": " + nested(kMaxDepth - 1 - own, open, inner, close) + "}")) << open << inner;
    EXPECT_FALSE(parse_header("{\"id\": 1, \"x\": " + nested(kMaxDepth - own, open, inner, close) + "}")) << open << inner;
  }
  EXPECT_FALSE(parse_header("{\"id\": 1, \"x\": " + nested(30'000, "[", "", "]") + "}"));
  EXPECT_FALSE(parse_header("{\"id\": 1, \"x\": " + nested(10'000, "{\"a\":", "1", "}") + "}"));
  EXPECT_FALSE(parse_header(std::string(65'536, '[')));
}

Frame with_args(const std::string& args, std::string payload) {
  Frame frame;
  frame.header["args"] = Json::parse(args);
  frame.payload = std::move(payload);
  return frame;
}

TEST(Cut, ArgumentsThenData) {
  const Frame frame = with_args("[3, 0, 2]", "abcdeREST");
  const auto cut = frame.cut();
  ASSERT_TRUE(cut);
  EXPECT_EQ(cut->args, (std::vector<std::string_view>{"abc", "", "de"}));
  EXPECT_EQ(cut->data, "REST");
  EXPECT_EQ(with_args("[]", "x").cut()->data, "x");
  Frame none;
  none.payload = "all data";
  ASSERT_TRUE(none.cut());
  EXPECT_TRUE(none.cut()->args.empty());
  EXPECT_EQ(none.cut()->data, "all data");
}

TEST(Cut, LengthsMustFit) {
  ASSERT_TRUE(with_args("[3]", "abc").cut());
  for (const char* args : {"[4]", "[2, 2]", "[18446744073709551615, 1]", "[1, 18446744073709551615]", "[3, 18446744073709551614]", "[-1]", "[1.0]", "[\"1\"]",
                           "[[1]]", "[null]", "[true]", "{}", "1", "null", "\"1\""}) {
    EXPECT_FALSE(with_args(args, "abc").cut()) << args;
  }
}

TEST(Cut, NumberOfArgumentsIsLimited) {
  const auto zeros = [](std::size_t count) {
    std::string out = "[0";
    for (std::size_t i = 1; i < count; ++i) out += ",0";
    return out + "]";
  };
  EXPECT_TRUE(with_args(zeros(kMaxArgs), "").cut());
  EXPECT_FALSE(with_args(zeros(kMaxArgs + 1), "").cut());
}

TEST(EncodeHead, IsReadBack) {
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    Json header{{"id", random()}, {"op", "x"}};
    for (unsigned i = random() % 6; i > 0; --i) header["k" + std::to_string(i)] = std::string(random() % 40, '\xc3') + "\n\"\\";
    const std::size_t payload = random() % kMaxReplyPayload;
    const std::string head = encode_head(header, payload);
    const auto sizes = read_sizes(head, kMaxReplyPayload);
    ASSERT_TRUE(sizes);
    ASSERT_EQ(head.size(), kPrefixBytes + sizes->header);
    ASSERT_EQ(sizes->payload, payload);
    const auto frame = parse_header(std::string_view(head).substr(kPrefixBytes));
    ASSERT_TRUE(frame) << frame.error().text();
    EXPECT_EQ(frame->id, header["id"]);
    // A slip (bytes that are no UTF-8) becomes U+FFFD; it neither throws nor breaks the frame.
    EXPECT_EQ(encode_head(frame->header, payload), head);
  }
}

TEST(CommonHeaders, AreTheProtocols) {
  EXPECT_EQ(event(7, "end"), Json::parse(R"({"id": 7, "ev": "end"})"));
  EXPECT_EQ(credit_event(7, 9), Json::parse(R"({"id": 7, "ev": "credit", "bytes": 9})"));
  EXPECT_EQ(request("ls"), Json::parse(R"({"op": "ls"})"));
  EXPECT_EQ(credit_request(9), Json::parse(R"({"op": "credit", "bytes": 9})"));
}

}  // namespace
}  // namespace sandy::wire
