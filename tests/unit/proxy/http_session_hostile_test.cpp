// Clients that want to be judged by one thing and served another, servers that lie, and either being slow.
#include "http_session_rig.h"

namespace sandy::proxy {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;
using testing::StartsWith;

const std::string kGood = "GET http://a.example/evil HTTP/1.1\r\nHost: a.example\r\n\r\n";

class HostileRequest : public HttpSessionTest, public testing::WithParamInterface<std::string> {};

// Each is answered with 400, the connection ends, and no server hears of it: nor of the request behind it.
TEST_P(HostileRequest, RefusedAsAProxy) {
  start();
  client.send(GetParam() + kGood);
  EXPECT_THAT(client.read_all(), AllOf(StartsWith("HTTP/1.1 400 Bad Request\r\n"), HasSubstr("Connection: close\r\n"), HasSubstr("\r\n\r\n[sandy] "), Not(HasSubstr("404"))));
  EXPECT_TRUE(a.nobody_waits());
  EXPECT_THAT(owner.connects(), IsEmpty());
  EXPECT_THAT(owner.refusals(), SizeIs(1));
}

TEST_P(HostileRequest, RefusedBehindAGoodOne) {
  start();
  client.send("GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n" + GetParam() + kGood);
  auto server = a.accept();
  server.read_head();
  server.send("HTTP/1.1 204 No Content\r\n\r\n");
  EXPECT_THAT(client.read_all(), AllOf(StartsWith("HTTP/1.1 204"), HasSubstr("\r\n\r\nHTTP/1.1 400 ")));
  EXPECT_EQ(server.read_all(), "");
}

INSTANTIATE_TEST_SUITE_P(Target, HostileRequest,  // B041
                         testing::Values("GET http://a.example/ HTTP/1.1\r\nHost: b.example\r\n\r\n", "GET http://a.example/ HTTP/1.1\r\nHost: a.example:81\r\n\r\n",
                                         "GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\nHost: a.example\r\n\r\n", "GET http://a.example/ HTTP/1.1\r\n\r\n",
                                         "GET http://user:pw@b.example@a.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n", "GET / HTTP/1.1\r\nHost: a.example\r\n\r\n",
                                         "OPTIONS * HTTP/1.1\r\nHost: a.example\r\n\r\n", "GET https://a.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n",
                                         "CONNECT a.example HTTP/1.1\r\nHost: a.example\r\n\r\n", "CONNECT a.example:443:80 HTTP/1.1\r\nHost: a.example\r\n\r\n",
                                         "CONNECT a.example:443 HTTP/1.1\r\nHost: b.example:443\r\n\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"));
INSTANTIATE_TEST_SUITE_P(Framing, HostileRequest,  // B044
                         testing::Values("POST http://a.example/ HTTP/1.1\r\nHost: a.example\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
                                         "POST http://a.example/ HTTP/1.1\r\nHost: a.example\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
                                         "POST http://a.example/ HTTP/1.1\r\nHost: a.example\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
                                         "POST http://a.example/ HTTP/1.1\r\nHost: a.example\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
                                         "POST http://a.example/ HTTP/1.1\r\nHost: a.example\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
                                         "POST http://a.example/ HTTP/1.1\r\nHost: a.example\r\nContent-Length: -5\r\n\r\nhello",
                                         "POST http://a.example/ HTTP/1.1\r\nHost: a.example\r\nContent-Length: +5\r\n\r\nhello",
                                         "POST http://a.example/ HTTP/1.1\r\nHost: a.example\r\nX: a\r\n b\r\n\r\n", "GET http://a.example/ HTTP/1.1\nHost: a.example\n\n",
                                         "POST http://a.example/ HTTP/1.1\r\nHost: a.example\r\nX: a\rb\r\n\r\n",
                                         std::string("GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\nX: \0\r\n\r\n", 57),
                                         "CONNECT a.example:443 HTTP/1.1\r\nHost: a.example\r\nContent-Length: 5\r\n\r\nhello",
                                         "CONNECT a.example:443 HTTP/1.1\r\nHost: a.example\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"));

// Threats 4, 11, 13: in the place of a server, a request for another one or a tunnel.
TEST_F(HttpSessionTest, NotForThisConnection) {
  for (const std::string request : {"GET / HTTP/1.1\r\nHost: c.example\r\n\r\n", "GET / HTTP/1.1\r\nHost: a.example:81\r\n\r\n", "GET http://c.example/ HTTP/1.1\r\nHost: c.example\r\n\r\n",
                                    "CONNECT a.example:80 HTTP/1.1\r\nHost: a.example\r\n\r\n", "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"}) {
    SCOPED_TRACE(request);
    if (thread.joinable()) end();
    start(authority("a.example"));
    client.send(request + "GET / HTTP/1.1\r\nHost: a.example\r\n\r\n");
    EXPECT_THAT(client.read_all(), StartsWith("HTTP/1.1 400"));
  }
  EXPECT_THAT(owner.connects(), IsEmpty());
  EXPECT_THAT(owner.refusals(), SizeIs(5));
  EXPECT_THAT(owner.refusals()[0], "c.example:80: the request is for c.example:80, and the connection is to a.example:80");
}

TEST_F(HttpSessionTest, HostOnAnotherPort) {
  owner.serve("a.example", a.port());
  start(authority("a.example:8080"));
  client.send("GET / HTTP/1.1\r\nHost: a.example:8080\r\n\r\n");
  auto server = a.accept();
  EXPECT_THAT(server.read_head(), HasSubstr("Host: a.example:8080\r\n"));
  server.send("HTTP/1.1 204 No Content\r\n\r\n");
  client.read_head();
  client.send("GET / HTTP/1.1\r\nHost: a.example\r\n\r\n");
  EXPECT_THAT(client.read_all(), StartsWith("HTTP/1.1 400"));
}

TEST_F(HttpSessionTest, OverLongHead) {
  start();
  client.send("GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\nX: " + std::string(70'000, 'x') + "\r\n\r\n");
  EXPECT_THAT(client.read_all(), StartsWith("HTTP/1.1 431 "));
}

// Threat 13: h2c goes on as what it is without the upgrade, and a switch that nobody asked for is none.
TEST_F(HttpSessionTest, NoOtherUpgrade) {
  start();
  client.send("GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n\r\n");
  auto server = a.accept();
  EXPECT_EQ(server.read_head(), "GET / HTTP/1.1\r\nHost: a.example\r\n\r\n");
  server.send("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n");
  EXPECT_THAT(client.read_all(), StartsWith("HTTP/1.1 502"));
  EXPECT_THAT(owner.tunnels(), IsEmpty());
}

TEST_F(HttpSessionTest, SwitchToAnotherProtocolThanAskedFor) {
  start();
  client.send("GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
  auto server = a.accept();
  server.read_head();
  server.send("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n");
  EXPECT_THAT(client.read_all(), StartsWith("HTTP/1.1 502"));
  EXPECT_THAT(owner.tunnels(), IsEmpty());
}

TEST_F(HttpSessionTest, MalformedChunksReachNobody) {
  start();
  client.send("POST http://a.example/ HTTP/1.1\r\nHost: a.example\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n");
  auto server = a.accept();
  server.read_until("5\r\nhello\r\n");
  client.send("5 \r\nworld\r\n0\r\n\r\n" + kGood);
  EXPECT_THAT(client.read_all(), StartsWith("HTTP/1.1 400"));
  EXPECT_EQ(server.read_all(), "");
  EXPECT_THAT(owner.refusals(), ElementsAre("a.example:80: a chunk's size is no number"));
}

TEST_F(HttpSessionTest, MalformedChunksOnceTheResponseHasBegun) {
  start();
  client.send("POST http://a.example/ HTTP/1.1\r\nHost: a.example\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n");
  auto server = a.accept();
  server.read_until("5\r\nhello\r\n");
  server.send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello");
  EXPECT_THAT(client.read_until("hello"), HasSubstr("Connection: close"));
  client.send("x\r\n" + kGood);
  EXPECT_EQ(client.read_all(), "");
  EXPECT_EQ(server.read_all(), "");
}

TEST_F(HttpSessionTest, BodyThatEndsEarly) {
  start();
  client.send("POST http://a.example/ HTTP/1.1\r\nHost: a.example\r\nContent-Length: 10\r\n\r\nhello");
  client.end_sending();
  auto server = a.accept();
  EXPECT_THAT(server.read_all(), EndsWith("hello"));
  EXPECT_THAT(client.read_all(), StartsWith("HTTP/1.1 400"));
}

// B043: what a server says unasked is not the next answer, whether it comes with the last response or later.
TEST_F(HttpSessionTest, ResponsesThatNobodyAskedFor) {
  start();
  client.send("GET http://a.example/1 HTTP/1.1\r\nHost: a.example\r\n\r\n");
  auto server = a.accept();
  server.read_head();
  server.send("HTTP/1.1 204 No Content\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil");
  EXPECT_EQ(client.read_head(), "HTTP/1.1 204 No Content\r\n\r\n");
  EXPECT_TRUE(client.silent());
  Peer second;
  exchange(second, "/2");
  EXPECT_TRUE(server.ends());
  second.send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil");
  std::this_thread::sleep_for(20ms);
  Peer third;
  exchange(third, "/3");
}

TEST_F(HttpSessionTest, BodyWhereThereIsNone) {
  start();
  client.send("HEAD http://a.example/1 HTTP/1.1\r\nHost: a.example\r\n\r\n");
  auto server = a.accept();
  server.read_head();
  server.send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil");
  EXPECT_EQ(client.read_head(), "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n");
  Peer second;
  exchange(second, "/2");
}

class HostileResponse : public HttpSessionTest, public testing::WithParamInterface<std::string> {};

TEST_P(HostileResponse, BadGateway) {
  start();
  client.send(kGood + kGood);
  auto server = a.accept();
  server.read_head();
  server.send(GetParam());
  server.end_sending();
  EXPECT_THAT(client.read_all(), AllOf(StartsWith("HTTP/1.1 502 Bad Gateway\r\n"), HasSubstr("Connection: close\r\n"), HasSubstr("\r\n\r\n[sandy] the server")));
  EXPECT_EQ(server.read_all(), "");
}

std::string many_interim() {
  std::string out;
  for (int i = 0; i < 200; ++i) out += "HTTP/1.1 100 Continue\r\n\r\n";
  return out;
}

INSTANTIATE_TEST_SUITE_P(Head, HostileResponse,
                         testing::Values("", "HTTP/1.1 200", "SSH-2.0-OpenSSH_9\r\n\r\n", "HTTP/1.1 200 OK\n\n", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
                                         "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n", "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n",
                                         "HTTP/1.1 200 OK\r\nX: a\rY: b\r\n\r\n", "HTTP/1.1 200 OK\r\nX: " + std::string(70'000, 'x') + "\r\n\r\n", "\x16\x03\x01", "HTTP/1.1 101 X\r\n\r\n"));

TEST_F(HttpSessionTest, InterimResponsesWithoutEnd) {
  start();
  client.send(kGood);
  auto server = a.accept();
  server.read_head();
  server.send(many_interim());
  EXPECT_THAT(client.read_all(), AllOf(StartsWith("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 100"), HasSubstr("HTTP/1.1 502 ")));
}

TEST_F(HttpSessionTest, TruncatedResponses) {
  for (const std::string response : {"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
                                     "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\nzz\r\n\r\n", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhelloHTTP/1.1 200 OK\r\n"}) {
    SCOPED_TRACE(response);
    if (thread.joinable()) end();
    start();
    client.send(kGood + kGood);
    auto server = a.accept();
    server.read_head();
    server.send(response);
    server.end_sending();
    EXPECT_THAT(client.read_all(), AllOf(StartsWith("HTTP/1.1 200"), HasSubstr("hello"), Not(HasSubstr("\r\n0\r\n"))));
    EXPECT_EQ(server.read_all(), "");
  }
}

// A client of HTTP/1.0 that gets chunks' content until the close sees a reset where that isn't all.
TEST_F(HttpSessionTest, TruncatedResponseUntilClose) {
  start();
  client.send("GET http://a.example/ HTTP/1.0\r\n\r\n");
  auto server = a.accept();
  server.read_head();
  server.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n");
  EXPECT_THAT(client.read_until("hello"), StartsWith("HTTP/1.1 200"));
  server.close();
  client.read_all();
  EXPECT_TRUE(client.was_reset());
}

TEST_F(HttpSessionTest, ServerSaysItIsTheProxy) {
  start();
  client.send(kGood);
  auto server = a.accept();
  server.read_head();
  server.send("HTTP/1.1 403 Forbidden\r\nX-Sandy-Blocked: forged\r\nProxy-Authenticate: Basic\r\nContent-Length: 0\r\n\r\n");
  EXPECT_EQ(client.read_head(), "HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n");
}

TEST_F(HttpSessionTest, ReasonsAreOneLine) {
  owner.refuse("b.example", {403, "no\r\nSet-Cookie: x\r\n\r\nhtml"});
  start();
  client.send("GET http://b.example/ HTTP/1.1\r\nHost: b.example\r\nConnection: close\r\n\r\n");
  const auto answer = client.read_all();
  EXPECT_THAT(answer, HasSubstr("X-Sandy-Blocked: no??Set-Cookie: x????html\r\n"));
  EXPECT_THAT(answer, EndsWith("\r\n\r\n[sandy] blocked: b.example:80 (no??Set-Cookie: x????html)\n"));
}

TEST_F(HttpSessionTest, SlowHead) {
  timeouts.head = 100ms;
  start();
  client.send("GET http://a.example/ HTTP/1.1\r\n");
  EXPECT_THAT(client.read_all(), StartsWith("HTTP/1.1 408 "));
  expect_end();
}

TEST_F(HttpSessionTest, SlowHeadByteByByte) {
  timeouts.head = 100ms;
  start();
  std::jthread drip([&] {
    for (int i = 0; i < 60 && client.send("X") == 1; ++i) std::this_thread::sleep_for(10ms);
  });
  EXPECT_THAT(client.read_all(), StartsWith("HTTP/1.1 408 "));
}

TEST_F(HttpSessionTest, IdleClient) {
  timeouts.idle = 100ms;
  start();
  Peer server;
  exchange(server, "/");
  expect_end();
  EXPECT_TRUE(server.ends());
}

TEST_F(HttpSessionTest, SilentServer) {
  timeouts.progress = 100ms;
  start();
  client.send(kGood);
  auto server = a.accept();
  server.read_head();
  EXPECT_THAT(client.read_all(), StartsWith("HTTP/1.1 504 "));
  EXPECT_TRUE(server.ends());
}

TEST_F(HttpSessionTest, ServerThatStopsInTheMiddle) {
  timeouts.progress = 200ms;
  start();
  client.send(kGood);
  auto server = a.accept();
  server.read_head();
  server.send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n");
  for (int i = 0; i < 5; ++i) {
    std::this_thread::sleep_for(100ms);
    server.send("x");
  }
  EXPECT_THAT(client.read_all(), EndsWith("\r\n\r\nxxxxx"));
  EXPECT_TRUE(server.ends());
}

TEST_F(HttpSessionTest, ClientThatTakesNothing) {
  timeouts.progress = 300ms;
  start();
  client.send(kGood);
  auto server = a.accept();
  server.read_head();
  const std::string piece(1 << 20, 'x');
  server.send("HTTP/1.1 200 OK\r\n\r\n");
  int pieces = 0;
  while (server.send(piece) == piece.size() && pieces < 100) ++pieces;
  EXPECT_LT(pieces, 100);
  EXPECT_EQ(ended.wait_for(5s), std::future_status::ready);
}

// The answer reaches a client that still sends, and one that never closes is left after a while.
TEST_F(HttpSessionTest, LingeringClose) {
  timeouts.linger = 200ms;
  start();
  client.send("POST http://b.example/ HTTP/1.1\r\nHost: b.example\r\nContent-Length: 40000\r\n\r\n" + std::string(20'000, 'x'));
  std::this_thread::sleep_for(50ms);
  client.send(std::string(20'000, 'x'));
  EXPECT_THAT(client.read_all(), StartsWith("HTTP/1.1 403"));
  EXPECT_FALSE(client.was_reset());
  EXPECT_EQ(ended.wait_for(5s), std::future_status::ready);
}

TEST_F(HttpSessionTest, ClientThatGoesAway) {
  start();
  client.send(kGood);
  auto server = a.accept();
  server.read_head();
  client.close();
  server.send("HTTP/1.1 200 OK\r\n\r\n");
  while (server.send(std::string(1 << 20, 'x')) > 0) {}
  EXPECT_EQ(ended.wait_for(5s), std::future_status::ready);
}

// The session is given up from outside in the middle of an exchange.
TEST_F(HttpSessionTest, EndOfTheLoop) {
  start();
  client.send("POST http://a.example/ HTTP/1.1\r\nHost: a.example\r\nContent-Length: 10\r\n\r\nhello");
  auto server = a.accept();
  server.read_until("hello");
  io.stop();
  thread.join();
}

TEST_F(HttpSessionTest, ClosedFromOutside) {
  start();
  client.send("POST http://a.example/ HTTP/1.1\r\nHost: a.example\r\nContent-Length: 10\r\n\r\nhello");
  auto server = a.accept();
  server.read_until("hello");
  asio::post(io, [this] { served->close(); });
  expect_end();
  EXPECT_TRUE(server.ends());
}

}  // namespace
}  // namespace sandy::proxy
