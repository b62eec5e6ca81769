#include "proxy/http_head.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sandy::proxy {
namespace {

using testing::HasSubstr;

HttpHead good(const std::string& head) {
  const auto found = find_http_head(head + "more");
  EXPECT_TRUE(found) << head << ": " << found.error();
  EXPECT_EQ(found.value_or(0), head.size()) << head;
  const auto parsed = parse_http_head(head);
  EXPECT_TRUE(parsed) << head << ": " << parsed.error();
  return parsed.value_or(HttpHead{});
}

TEST(HttpHead, OriginForm) {
  const auto head = good("GET /a?b=c%20d HTTP/1.1\r\nHost: Example.com:8080\r\nAccept:  */* \r\n\r\n");
  EXPECT_EQ(head.method, "GET");
  EXPECT_EQ(head.form, TargetForm::origin);
  EXPECT_EQ(head.path, "/a?b=c%20d");
  EXPECT_EQ(text(head.target.host), "example.com");
  EXPECT_EQ(head.target.port, 8080);
  EXPECT_EQ(head.headers.at(1), std::pair(std::string("Accept"), std::string("*/*")));
  EXPECT_TRUE(head.keep_alive && head.version_1_1 && !head.chunked && !head.upgrade);
}

TEST(HttpHead, ByteByByteIsLookedAtOnce) {
  const std::string head = "GET / HTTP/1.1\r\nHost: a\r\n\r\n", broken = "GET / HTTP/1.1\r\nHost: a\rb\r\n\r\n";
  for (std::size_t size = 1; size < head.size(); ++size) EXPECT_EQ(find_http_head(std::string_view(head).substr(0, size), size - 1), 0U);
  EXPECT_EQ(find_http_head(head, head.size() - 1), head.size());
  const auto at = broken.find("\rb");
  EXPECT_EQ(find_http_head(std::string_view(broken).substr(0, at + 1), at), 0U);
  EXPECT_FALSE(find_http_head(std::string_view(broken).substr(0, at + 2), at + 1));
  EXPECT_EQ(find_http_head(std::string(kMaxHttpHead, 'x'), kMaxHttpHead - 1).error(), kHttpHeadTooLong);
}

TEST(HttpHead, AbsoluteForm) {
  EXPECT_EQ(good("GET http://example.com HTTP/1.1\r\nHost: example.com\r\n\r\n").path, "/");
  EXPECT_EQ(good("GET HTTP://example.com?x HTTP/1.1\r\nHost: EXAMPLE.com.:80\r\n\r\n").path, "/?x");
  EXPECT_EQ(good("GET http://1.2.3.4:81/x HTTP/1.1\r\nHost: 1.2.3.4:81\r\n\r\n").target.port, 81);
  EXPECT_EQ(text(good("GET http://[2001:db8::1]/ HTTP/1.1\r\nHost: [2001:DB8:0::1]\r\n\r\n").target.host), "2001:db8::1");
  EXPECT_EQ(text(good("GET http://example.com/ HTTP/1.0\r\n\r\n").target.host), "example.com");
}

TEST(HttpHead, Connect) {
  const auto head = good("CONNECT example.com:443 HTTP/1.1\r\nHost: example.com\r\nProxy-Connection: keep-alive\r\n\r\n");
  EXPECT_EQ(head.form, TargetForm::authority);
  EXPECT_EQ(head.target.port, 443);
  EXPECT_EQ(good("CONNECT [::1]:443 HTTP/1.1\r\nHost: [::1]:443\r\nContent-Length: 0\r\n\r\n").target.port, 443);
}

TEST(HttpHead, BodiesAndConnections) {
  EXPECT_EQ(good("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 12\r\nExpect: 100-Continue\r\n\r\n").content_length, 12U);
  EXPECT_TRUE(good("POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-Continue\r\n\r\n").expects_continue);
  EXPECT_TRUE(good("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: Chunked\r\n\r\n").chunked);
  EXPECT_FALSE(good("GET / HTTP/1.1\r\nHost: a\r\nConnection: x, Close\r\n\r\n").keep_alive);
  EXPECT_FALSE(good("GET / HTTP/1.0\r\nHost: a\r\n\r\n").keep_alive);
  EXPECT_TRUE(good("GET / HTTP/1.0\r\nHost: a\r\nConnection: Keep-Alive\r\n\r\n").keep_alive);
  EXPECT_TRUE(good("GET / HTTP/1.1\r\nHost: a\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n\r\n").upgrade);
  EXPECT_FALSE(good("GET / HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\n\r\n").upgrade);
  EXPECT_EQ(good("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n").form, TargetForm::asterisk);
}

TEST(HttpHead, Refused) {
  const std::pair<std::string, std::string> cases[] = {
      {"GET / HTTP/1.1\r\n\r\n", "no Host"},
      {"GET / HTTP/1.0\r\n\r\n", "no Host"},
      {"GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", "two Host"},
      {"GET / HTTP/1.1\r\nHost:\r\n\r\n", "Host is no"},
      {"GET / HTTP/1.1\r\nHost: a b\r\n\r\n", "Host is no"},
      {"GET / HTTP/1.1\r\nHost: user@a\r\n\r\n", "Host is no"},
      {"GET / HTTP/1.1\r\nHost: a, b\r\n\r\n", "Host is no"},
      {"GET / HTTP/1.1\r\nHost: a:0\r\n\r\n", "Host is no"},
      {"GET / HTTP/1.1\r\nHost: 127.1\r\n\r\n", "Host is no"},
      {"GET / HTTP/1.1\r\nHost : a\r\n\r\n", "a header is none"},
      {"GET / HTTP/1.1\r\n: a\r\n\r\n", "a header is none"},
      {"GET / HTTP/1.1\r\nHost: a\r\n b\r\n\r\n", "second line"},
      {"GET / HTTP/1.1\r\n Host: a\r\n\r\n", "second line"},
      {"GET / HTTP/1.1\r\nHost: a\r\nX: \x01\r\n\r\n", "control character"},
      {"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n", "two Content-Length"},
      {"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1, 1\r\n\r\n", "no number"},
      {"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: +1\r\n\r\n", "no number"},
      {"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n", "no number"},
      {"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 0x1\r\n\r\n", "no number"},
      {"GET / HTTP/1.1\r\nHost: a\r\nContent-Length:\r\n\r\n", "no number"},
      {"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 9999999999999999999\r\n\r\n", "no number"},
      {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", "both"},
      {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", "other than chunked"},
      {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n", "two Transfer"},
      {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: \x0b" "chunked\r\n\r\n", "control character"},
      {"POST / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n", "HTTP/1.0"},
      {"POST / HTTP/1.1\r\nHost: a\r\nExpect: 200-maybe\r\n\r\n", "Expect"},
      {"GET http://a/ HTTP/1.1\r\nHost: b\r\n\r\n", "not the target's"},
      {"GET http://a/ HTTP/1.1\r\nHost: a:81\r\n\r\n", "not the target's"},
      {"GET http://user@a/ HTTP/1.1\r\nHost: a\r\n\r\n", "the target's host"},
      {"GET http:///x HTTP/1.1\r\nHost: a\r\n\r\n", "the target's host"},
      {"GET https://a/ HTTP/1.1\r\nHost: a\r\n\r\n", "no http: URL"},
      {"GET ftp://a/ HTTP/1.1\r\nHost: a\r\n\r\n", "no http: URL"},
      {"GET a HTTP/1.1\r\nHost: a\r\n\r\n", "no http: URL"},
      {"GET /# HTTP/1.1\r\nHost: a\r\n\r\n", "a #"},
      {"GET / / HTTP/1.1\r\nHost: a\r\n\r\n", "a space"},
      {"GET  / HTTP/1.1\r\nHost: a\r\n\r\n", "a space"},
      {"GET /\tx HTTP/1.1\r\nHost: a\r\n\r\n", "a space"},
      {"GET * HTTP/1.1\r\nHost: a\r\n\r\n", "OPTIONS alone"},
      {"GET / HTTP/2.0\r\nHost: a\r\n\r\n", "version"},
      {"GET / http/1.1\r\nHost: a\r\n\r\n", "version"},
      {"GET /\r\nHost: a\r\n\r\n", "METHOD TARGET VERSION"},
      {"G(T / HTTP/1.1\r\nHost: a\r\n\r\n", "token"},
      {"CONNECT a HTTP/1.1\r\nHost: a\r\n\r\n", "HOST:PORT"},
      {"CONNECT /x HTTP/1.1\r\nHost: a\r\n\r\n", "HOST:PORT"},
      {"CONNECT a:443 HTTP/1.1\r\nHost: b:443\r\n\r\n", "not the target's"},
      {"CONNECT a:443 HTTP/1.1\r\nHost: a:80\r\n\r\n", "not the target's"},
      {"CONNECT a:443 HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n", "with a body"},
      {"CONNECT a:443 HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n", "with a body"},
  };
  for (const auto& [head, why] : cases) {
    const auto parsed = parse_http_head(head);
    ASSERT_FALSE(parsed) << head;
    EXPECT_THAT(parsed.error(), HasSubstr(why)) << head;
  }
}

TEST(HttpHead, Ends) {
  EXPECT_EQ(find_http_head("").value_or(9), 0U);
  EXPECT_EQ(find_http_head("GET / HTTP/1.1\r\nHost: a\r\n").value_or(9), 0U);
  EXPECT_EQ(find_http_head("GET / HTTP/1.1\r\n\r").value_or(9), 0U);
  const std::pair<std::string, std::string> cases[] = {
      {"GET / HTTP/1.1\nHost: a\n\n", "line feed alone"},
      {"GET / HTTP/1.1\r\nHost: a\n\r\n", "line feed alone"},
      {"\nGET /", "line feed alone"},
      {"\r\nGET / HTTP/1.1\r\n\r\n", "empty line"},
      {"GET / HTTP/1.1\rHost: a\r\n\r\n", "carriage return alone"},
      {std::string("GET /\0 HTTP/1.1\r\n\r\n", 19), "NUL"},
      {"GET /" + std::string(70'000, 'x'), "64 KiB"},
  };
  for (const auto& [bytes, why] : cases) {
    const auto found = find_http_head(bytes);
    ASSERT_FALSE(found) << bytes.substr(0, 40);
    EXPECT_THAT(found.error(), HasSubstr(why));
  }
}

TEST(ParseAuthority, Table) {
  for (const char* text : {"a", "a:", "a:1", "A.b.:65535", "1.2.3.4", "1.2.3.4:5", "[::1]", "[::1]:5"}) EXPECT_TRUE(parse_authority(text)) << text;
  for (const char* text : {"", ":1", "a:b", "a:65536", "a:000001", "::1", "[::1", "[::1]x", "[1.2.3.4]", "[a]", "a b", "a/b", "127.1", "a@b", "[fe80::1%25eth0]"}) {
    EXPECT_FALSE(parse_authority(text)) << text;
  }
}

}  // namespace
}  // namespace sandy::proxy
