#include "proxy/http_body.h"

#include <gtest/gtest.h>

namespace sandy::proxy {
namespace {

struct Read {
  std::string body, rest, error;
  bool done = false;
  HttpFields trailers;
};

Read read(BodyReader reader, std::string_view bytes, std::size_t piece) {
  Read out;
  while (!bytes.empty() && !reader.done()) {
    const auto used = reader.feed(bytes.substr(0, piece), out.body);
    if (!used) {
      out.error = used.error();
      return out;
    }
    bytes.remove_prefix(*used);
  }
  out.rest = bytes;
  out.done = reader.done();
  out.trailers = reader.trailers();
  return out;
}

Read read_chunked(std::string_view bytes, std::size_t piece = 1'000'000) { return read(BodyReader(Framing::chunked), bytes, piece); }

TEST(HttpBody, Length) {
  for (const std::size_t piece : {1, 3, 100}) {
    const auto out = read(BodyReader(Framing::length, 5), "hellomore", piece);
    EXPECT_TRUE(out.done);
    EXPECT_EQ(out.body, "hello");
    EXPECT_EQ(out.rest, "more");
  }
  EXPECT_TRUE(BodyReader(Framing::length, 0).done());
  EXPECT_TRUE(BodyReader(Framing::none).done());
}

TEST(HttpBody, UntilClose) {
  BodyReader reader(Framing::close);
  std::string body;
  EXPECT_EQ(reader.feed("abc", body), 3U);
  EXPECT_EQ(body, "abc");
  EXPECT_FALSE(reader.done());
  EXPECT_TRUE(reader.may_end());
}

TEST(HttpBody, Chunked) {
  for (const std::size_t piece : {1, 2, 7, 1000}) {
    const auto out = read_chunked("5\r\nhello\r\n00A;x=\"y\"\r\n0123456789\r\n0\r\nX-Sum: 1\r\nContent-Length: 9\r\nhost: evil\r\n\r\nGET /", piece);
    EXPECT_TRUE(out.done) << out.error;
    EXPECT_EQ(out.body, "hello0123456789");
    EXPECT_EQ(out.rest, "GET /");
    const HttpFields expected = {{"X-Sum", "1"}};
    EXPECT_EQ(out.trailers, expected);
  }
}

TEST(HttpBody, ChunkedRefused) {
  const std::string long_extension(BodyReader::kMaxSizeLine, 'x'), long_trailer(BodyReader::kMaxTrailers, 'x');
  const std::string cases[] = {
      "\r\n",        "g\r\n",        "-1\r\n",       "+5\r\n",          "0x5\r\n",      " 5\r\n",     "5 \r\n",          "5\t\r\n",        "5\n",
      "5\rx\n",      "5\r\nhelloX\r\n", "5\r\nhello\n", "5\r\nhello0\r\n", "1234567890abcdef0\r\n", "ffffffffffffffff\r\n",
      "5;a\x01\r\n", "5;" + long_extension, "0\r\n : x\r\n", "0\r\nno colon\r\n", "0\r\nA: b\r\n folded\r\n", "0\r\nA: b\n\n", "0\r\nA: " + long_trailer, "0\r\nA : b\r\n",
      std::string("5;\0\r\n", 5), "0\r\n\rX\n",
  };
  for (const auto& bytes : cases) {
    for (const std::size_t piece : {1, 1'000'000}) EXPECT_NE(read_chunked(bytes, piece).error, "") << bytes.substr(0, 40);
  }
}

TEST(HttpBody, Writer) {
  std::string out;
  const BodyWriter chunked(Framing::chunked), plain(Framing::length);
  const HttpFields trailers = {{"A", "b"}};
  chunked.piece(out, std::string(17, 'x'));
  chunked.piece(out, "");
  chunked.end(out, trailers);
  EXPECT_EQ(out, "11\r\n" + std::string(17, 'x') + "\r\n0\r\nA: b\r\n\r\n");
  out.clear();
  plain.piece(out, "abc");
  plain.end(out, trailers);
  EXPECT_EQ(out, "abc");
}

}  // namespace
}  // namespace sandy::proxy
