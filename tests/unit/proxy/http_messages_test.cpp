#include "proxy/http_messages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sandy::proxy {
namespace {

using testing::HasSubstr;
using testing::Not;

HttpHead request(const std::string& head) {
  const auto parsed = parse_http_head(head);
  EXPECT_TRUE(parsed) << parsed.error();
  return parsed.value_or(HttpHead{});
}

std::string forwarded(const std::string& head) {
  const auto parsed = request(head);
  auto target = parsed.target;
  if (!target.port) target.port = 80;
  return request_text(parsed, target);
}

ResponseHead response(const std::string& head, bool to_head_request = false) {
  const auto parsed = parse_response_head(head, to_head_request);
  EXPECT_TRUE(parsed) << head << ": " << parsed.error();
  return parsed.value_or(ResponseHead{});
}

TEST(HttpMessages, RequestIsWrittenAnew) {
  EXPECT_EQ(forwarded("GET http://A.example/x?y HTTP/1.1\r\nAccept: */*\r\nHost: a.example:80\r\nX: 1\r\n\r\n"),
            "GET /x?y HTTP/1.1\r\nHost: a.example\r\nAccept: */*\r\nX: 1\r\n\r\n");
  EXPECT_EQ(forwarded("GET http://[2001:db8::1]:81/ HTTP/1.0\r\n\r\n"), "GET / HTTP/1.1\r\nHost: [2001:db8::1]:81\r\nConnection: close\r\n\r\n");
  EXPECT_EQ(forwarded("POST / HTTP/1.1\r\nHost: a\r\ncontent-length: 007\r\n\r\n"), "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 7\r\n\r\n");
  EXPECT_EQ(forwarded("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n"), "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n");
}

TEST(HttpMessages, RequestWithoutWhatIsOfTheConnection) {
  EXPECT_EQ(forwarded("GET / HTTP/1.1\r\nHost: a\r\nConnection: keep-alive, X-Mine\r\nX-Mine: 1\r\nKeep-Alive: 5\r\nProxy-Connection: x\r\n"
                      "Proxy-Authorization: secret\r\nTE: gzip\r\nTrailer: X\r\nX-Other: 2\r\n\r\n"),
            "GET / HTTP/1.1\r\nHost: a\r\nX-Other: 2\r\n\r\n");
  // What it lists can't take away what frames or routes the message.
  EXPECT_EQ(forwarded("POST / HTTP/1.1\r\nHost: a\r\nConnection: close, Content-Length, Host\r\nContent-Length: 3\r\n\r\n"),
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nConnection: close\r\n\r\n");
  EXPECT_THAT(forwarded("GET / HTTP/1.1\r\nHost: a\r\nTE: trailers, deflate\r\nConnection: TE\r\n\r\n"), HasSubstr("TE: trailers\r\nConnection: TE\r\n"));
  EXPECT_THAT(forwarded("POST / HTTP/1.0\r\nHost: a\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n"), Not(HasSubstr("Expect")));
}

TEST(HttpMessages, UpgradeToWebSocketAlone) {
  EXPECT_THAT(forwarded("GET / HTTP/1.1\r\nHost: a\r\nConnection: keep-alive, Upgrade\r\nUpgrade: WebSocket\r\nSec-WebSocket-Key: x\r\n\r\n"),
              HasSubstr("Sec-WebSocket-Key: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"));
  EXPECT_EQ(forwarded("GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: x\r\n\r\n"), "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_THAT(forwarded("GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: h2c, websocket\r\n\r\n"), Not(HasSubstr("h2c")));
  for (const std::string head : {"POST / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n", "GET / HTTP/1.0\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
                                 "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n", "GET / HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\n\r\n"}) {
    EXPECT_FALSE(asks_for_websocket(request(head))) << head;
    EXPECT_THAT(forwarded(head), Not(HasSubstr("pgrade"))) << head;
  }
}

TEST(HttpMessages, ResponseFraming) {
  EXPECT_EQ(response("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n").framing, Framing::length);
  EXPECT_EQ(response("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\n").content_length, 5U);
  EXPECT_EQ(response("HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n").framing, Framing::chunked);
  EXPECT_EQ(response("HTTP/1.1 200 OK\r\n\r\n").framing, Framing::close);
  for (const std::string status : {"100", "101", "204", "304"}) EXPECT_EQ(response("HTTP/1.1 " + status + " X\r\nContent-Length: 5\r\n\r\n").framing, Framing::none);
  EXPECT_EQ(response("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", true).framing, Framing::none);
  EXPECT_TRUE(response("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n").keep_alive);
  EXPECT_FALSE(response("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: x, close\r\n\r\n").keep_alive);
  EXPECT_FALSE(response("HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\n").keep_alive);
  EXPECT_FALSE(response("HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n").keep_alive);
  EXPECT_FALSE(response("HTTP/1.1 200 OK\r\n\r\n").keep_alive);
}

TEST(HttpMessages, ResponseRefused) {
  std::string many = "HTTP/1.1 200 OK\r\n";
  for (int i = 0; i < 300; ++i) many += "A: b\r\n";
  const std::string cases[] = {
      "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n",
      "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n",
      "HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n",
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n",
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, chunked\r\n\r\n",
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
      "HTTP/1.1 200 OK\r\nA : b\r\n\r\n",
      "HTTP/1.1 200 OK\r\nA: b\x01\r\n\r\n",
      "HTTP/2.0 200 OK\r\n\r\n",
      "HTTP/1.1 099 OK\r\n\r\n",
      "HTTP/1.1 600 OK\r\n\r\n",
      "SSH-2.0-x\r\n\r\n",
      many + "\r\n",
  };
  for (const auto& head : cases) EXPECT_FALSE(parse_response_head(head, false)) << head;
}

TEST(HttpMessages, ResponseIsWrittenAnew) {
  const auto head = response("HTTP/1.0 404 Not here\r\nServer: x\r\nConnection: close, X-Mine\r\nX-Mine: 1\r\nKeep-Alive: 1\r\nX-Sandy-Blocked: forged\r\nSet-Cookie: a\r\nSet-Cookie: b\r\n"
                             "Upgrade: h2c\r\nContent-Length: 5, 5\r\n\r\n");
  EXPECT_EQ(response_text(head, Framing::length, true, true),
            "HTTP/1.1 404 Not here\r\nServer: x\r\nSet-Cookie: a\r\nSet-Cookie: b\r\nContent-Length: 5\r\n\r\n");
  EXPECT_THAT(response_text(head, Framing::length, false, true), HasSubstr("Connection: keep-alive\r\n"));
  EXPECT_THAT(response_text(head, Framing::length, true, false), HasSubstr("Connection: close\r\n"));
}

TEST(HttpMessages, Answer) {
  Answer answer;
  answer.status = 403;
  answer.reason = "no rule\r\nX-Evil: 1";
  answer.blocked = "b.example:80";
  answer.keep_alive = true;
  const auto text = answer_text(answer);
  EXPECT_THAT(text, HasSubstr("HTTP/1.1 403 Forbidden\r\n"));
  EXPECT_THAT(text, HasSubstr("X-Sandy-Blocked: no rule??X-Evil: 1\r\n"));
  EXPECT_TRUE(text.ends_with("\r\n\r\n[sandy] blocked: b.example:80 (no rule??X-Evil: 1)\n")) << text;
  EXPECT_THAT(text, Not(HasSubstr("Connection")));
  answer.to_head_request = true;
  EXPECT_TRUE(answer_text(answer).ends_with("\r\n\r\n"));
}

}  // namespace
}  // namespace sandy::proxy
