// What a well-behaved client and server see; http_session_hostile_test has the others.
#include "http_session_rig.h"

namespace sandy::proxy {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

// Bytes in which each place can be told.
std::string pattern(std::size_t size) {
  std::string out(size, '\0');
  std::uint32_t state = 1;
  for (auto& byte : out) byte = static_cast<char>((state = state * 1664525 + 1013904223) >> 24);
  return out;
}

// What the chunks of a whole body hold.
std::string unchunked(std::string_view bytes) {
  BodyReader reader(Framing::chunked);
  std::string out;
  EXPECT_EQ(reader.feed(bytes, out), bytes.size());
  EXPECT_TRUE(reader.done());
  return out;
}

TEST_F(HttpSessionTest, ForwardsAndKeepsBothConnections) {
  start();
  client.send("GET http://a.example/x?y HTTP/1.1\r\nHost: a.example\r\nAccept: */*\r\nProxy-Connection: keep-alive\r\n\r\n");
  auto server = a.accept();
  EXPECT_EQ(server.read_head(), "GET /x?y HTTP/1.1\r\nHost: a.example\r\nAccept: */*\r\n\r\n");
  server.send("HTTP/1.1 200 Fine\r\nServer: x\r\nContent-Length: 5\r\nKeep-Alive: 1\r\n\r\nhello");
  EXPECT_EQ(client.read_until("hello"), "HTTP/1.1 200 Fine\r\nServer: x\r\nContent-Length: 5\r\n\r\nhello");
  exchange(server, "/2");
  exchange(server, "/3");
  EXPECT_THAT(owner.connects(), ElementsAre("a.example:80"));
  EXPECT_TRUE(a.nobody_waits());
  EXPECT_THAT(owner.ends(), IsEmpty());
  client.end_sending();
  expect_end();
  EXPECT_TRUE(server.ends());
  EXPECT_EQ(owner.ends().size(), 1);
}

// What was allowed is told to have ended, once, with what went each way as the server has it.
TEST_F(HttpSessionTest, CountsBytesOfEachServer) {
  start();
  const std::string small = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", closing = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok";
  client.send("GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n");
  auto server = a.accept();
  std::size_t up = server.read_head().size();
  server.send(small);
  client.read_until("hello");
  client.send("POST http://a.example/2 HTTP/1.1\r\nHost: a.example\r\nContent-Length: 3\r\n\r\nabc");
  up += server.read_head().size() + server.read(3).size();
  server.send(closing);
  client.read_until("\r\n\r\nok");
  const auto first = std::to_string(up) + ' ' + std::to_string(small.size() + closing.size());
  EXPECT_TRUE(server.ends());
  EXPECT_THAT(owner.ends(), ElementsAre(first));
  client.send("GET http://c.example/ HTTP/1.1\r\nHost: c.example\r\n\r\n");
  auto other = c.accept();
  up = other.read_head().size();
  other.send(small);
  client.read_until("hello");
  // A tunnel is another connection.
  client.send("CONNECT c.example:443 HTTP/1.1\r\nHost: c.example:443\r\n\r\n");
  auto tunnelled = c.accept();
  client.read_head();
  EXPECT_TRUE(other.ends());
  EXPECT_THAT(owner.ends(), ElementsAre(first, std::to_string(up) + ' ' + std::to_string(small.size())));
}

TEST_F(HttpSessionTest, ByteByByte) {
  start();
  client.send_slowly("POST http://a.example/ HTTP/1.1\r\nHost: a.example\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\n");
  auto server = a.accept();
  EXPECT_THAT(server.read_head(), HasSubstr("Transfer-Encoding: chunked"));
  EXPECT_EQ(unchunked(server.read_until("0\r\n\r\n")), "abcde");
  server.send_slowly("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n3\r\nabc\r\n2;x=y\r\nde\r\n0\r\nX-Sum: 1\r\nSet-Cookie: evil\r\n\r\n");
  EXPECT_THAT(client.read_head(), HasSubstr("Trailer: X-Sum\r\nTransfer-Encoding: chunked\r\n"));
  const auto body = client.read_until("0\r\nX-Sum: 1\r\n\r\n");
  EXPECT_EQ(unchunked(body), "abcde");
  exchange(server, "/2");
}

// B043
TEST_F(HttpSessionTest, EachAuthorityHasItsOwnServer) {
  start();
  Peer server;
  exchange(server, "/1");
  client.send("GET http://c.example:8080/2 HTTP/1.1\r\nHost: c.example:8080\r\n\r\n");
  auto other = c.accept();
  EXPECT_EQ(other.read_head(), "GET /2 HTTP/1.1\r\nHost: c.example:8080\r\n\r\n");
  EXPECT_TRUE(server.ends());
  other.send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nfromC");
  EXPECT_THAT(client.read_until("fromC"), StartsWith("HTTP/1.1 200"));
  Peer again;
  exchange(again, "/3");
  EXPECT_THAT(owner.connects(), ElementsAre("a.example:80", "c.example:8080", "a.example:80"));
}

TEST_F(HttpSessionTest, PipelinedRequestsInOrder) {
  start();
  std::string requests;
  for (int i = 0; i < 20; ++i) {
    requests += "POST http://a.example/" + std::to_string(i) + " HTTP/1.1\r\nHost: a.example\r\nContent-Length: 2\r\n\r\n" + (i < 10 ? "0" : "") + std::to_string(i);
  }
  client.send(requests);
  auto server = a.accept();
  for (int i = 0; i < 20; ++i) {
    EXPECT_THAT(server.read_head(), StartsWith("POST /" + std::to_string(i) + " "));
    EXPECT_EQ(std::stoi(server.read(2)), i);
    EXPECT_TRUE(i % 5 != 0 || server.silent(20ms));
    server.send("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n" + std::string(1, static_cast<char>('a' + i)));
  }
  for (int i = 0; i < 20; ++i) {
    client.read_head();
    EXPECT_EQ(client.read(1)[0], 'a' + i);
  }
  EXPECT_THAT(owner.connects(), ElementsAre("a.example:80"));
}

// B052
TEST_F(HttpSessionTest, BigBodiesBothWaysAtOnce) {
  start();
  const auto bytes = pattern(64 << 20);
  const auto length = std::to_string(bytes.size());
  std::jthread upload([&] { client.send("POST http://a.example/ HTTP/1.1\r\nHost: a.example\r\nContent-Length: " + length + "\r\n\r\n"), client.send(bytes); });
  auto server = a.accept();
  server.read_head();
  Peer writer(UniqueFd(::dup(server.fd())));
  std::jthread answer([&] {
    writer.send("HTTP/1.1 200 OK\r\nContent-Length: " + length + "\r\n\r\n");
    writer.send(std::string_view(bytes).substr(1));
  });
  // A response that is whole ends the request, so its last byte comes after that.
  std::jthread sink([&] {
    EXPECT_TRUE(server.read(bytes.size()) == bytes);
    answer.join();
    writer.send(std::string_view(bytes).substr(0, 1));
  });
  client.read_head();
  EXPECT_TRUE(client.read(bytes.size()) == bytes.substr(1) + bytes[0]);
}

TEST_F(HttpSessionTest, BigChunkedBody) {
  start();
  const auto bytes = pattern(4 << 20);
  std::string body;
  for (std::size_t at = 0, size = 1; at < bytes.size(); at += size, size = size * 3 % 70'001 + 1) BodyWriter(Framing::chunked).piece(body, std::string_view(bytes).substr(at, size));
  body += "0\r\n\r\n";
  std::jthread upload([&] { client.send("PUT http://a.example/ HTTP/1.1\r\nHost: a.example\r\nTransfer-Encoding: chunked\r\n\r\n"), client.send(body); });
  auto server = a.accept();
  server.read_head();
  EXPECT_TRUE(unchunked(server.read_until("\r\n0\r\n\r\n")) == bytes);
  // The upload's thread may be in the client's socket, so that only its reading half is used here.
  std::jthread answer([&] { server.send("HTTP/1.1 200 OK\r\n\r\n"), server.send(bytes), server.close(); });
  EXPECT_THAT(client.read_head(), HasSubstr("Transfer-Encoding: chunked\r\n"));
  EXPECT_TRUE(unchunked(client.read_until("\r\n0\r\n\r\n")) == bytes);
}

// A server that takes nothing stops the client, and a client that takes nothing the server: not a proxy's memory.
TEST_F(HttpSessionTest, BackPressure) {
  start();
  const timeval soon{0, 300'000};
  ::setsockopt(client.fd(), SOL_SOCKET, SO_SNDTIMEO, &soon, sizeof soon);
  client.send("POST http://a.example/ HTTP/1.1\r\nHost: a.example\r\nContent-Length: 300000000\r\n\r\n");
  auto server = a.accept();
  ::setsockopt(server.fd(), SOL_SOCKET, SO_SNDTIMEO, &soon, sizeof soon);
  const std::string piece(1 << 20, 'x');
  std::size_t sent = 0, got = 0;
  for (std::size_t n = piece.size(); n == piece.size() && sent < (200U << 20); sent += n) n = client.send(piece);
  server.send("HTTP/1.1 200 OK\r\n\r\n");
  for (std::size_t n = piece.size(); n == piece.size() && got < (200U << 20); got += n) n = server.send(piece);
  EXPECT_LT(sent, 60U << 20);  // what the kernel's buffers of two connections take
  EXPECT_LT(got, 60U << 20);
  server.close();
}

TEST_F(HttpSessionTest, ExpectContinue) {
  start();
  client.send("POST http://a.example/ HTTP/1.1\r\nHost: a.example\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n");
  auto server = a.accept();
  EXPECT_THAT(server.read_head(), HasSubstr("Expect: 100-continue"));
  server.send("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n");
  EXPECT_EQ(client.read_head(), "HTTP/1.1 100 Continue\r\n\r\n");
  EXPECT_EQ(client.read_head(), "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n");
  client.send("hello");
  EXPECT_EQ(server.read(5), "hello");
  server.send("HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n");
  EXPECT_EQ(client.read_head(), "HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n");
  exchange(server, "/2");
}

TEST_F(HttpSessionTest, EarlyAnswerWhileTheClientSends) {
  start();
  client.send("POST http://a.example/ HTTP/1.1\r\nHost: a.example\r\nContent-Length: 100000000\r\n\r\nabc");
  auto server = a.accept();
  server.read_until("abc");
  server.send("HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\n\r\nbig");
  EXPECT_EQ(client.read_until("big"), "HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\nConnection: close\r\n\r\nbig");
  EXPECT_TRUE(client.ends());
  EXPECT_TRUE(server.ends());
}

TEST_F(HttpSessionTest, EarlyAnswerThenAResetByTheServer) {
  start();
  const auto bytes = pattern(32 << 20);
  std::jthread upload([&] { client.send("POST http://a.example/ HTTP/1.1\r\nHost: a.example\r\nContent-Length: " + std::to_string(bytes.size()) + "\r\n\r\n"), client.send(bytes); });
  auto server = a.accept();
  server.read_head();
  server.send("HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\n\r\nbig");
  server.close();
  EXPECT_THAT(client.read_until("big"), StartsWith("HTTP/1.1 413"));
}

TEST_F(HttpSessionTest, ResponsesWithoutBody) {
  start();
  client.send("HEAD http://a.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n");
  auto server = a.accept();
  server.read_head();
  server.send("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n");
  EXPECT_EQ(client.read_head(), "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n");
  exchange(server, "/204");
  client.send("GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n");
  server.read_head();
  server.send("HTTP/1.1 304 Not Modified\r\nContent-Length: 1000\r\nETag: x\r\n\r\n");
  EXPECT_EQ(client.read_head(), "HTTP/1.1 304 Not Modified\r\nETag: x\r\nContent-Length: 1000\r\n\r\n");
  exchange(server, "/2");
  EXPECT_TRUE(a.nobody_waits());
}

TEST_F(HttpSessionTest, ResponseUntilCloseIsChunked) {
  start();
  client.send("GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n");
  auto server = a.accept();
  server.read_head();
  server.send("HTTP/1.0 200 OK\r\nServer: old\r\n\r\nhello");
  EXPECT_EQ(client.read_head(), "HTTP/1.1 200 OK\r\nServer: old\r\nTransfer-Encoding: chunked\r\n\r\n");
  EXPECT_EQ(client.read_until("hello\r\n"), "5\r\nhello\r\n");
  server.send("more");
  server.close();
  EXPECT_EQ(client.read_until("0\r\n\r\n"), "4\r\nmore\r\n0\r\n\r\n");
  Peer again;
  exchange(again, "/2");
}

TEST_F(HttpSessionTest, ClientsOfHttp10) {
  start();
  client.send("GET http://a.example/ HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  auto server = a.accept();
  EXPECT_EQ(server.read_head(), "GET / HTTP/1.1\r\nHost: a.example\r\n\r\n");
  server.send("HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi");
  EXPECT_EQ(client.read_until("hi"), "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: keep-alive\r\n\r\nhi");
  client.send("GET http://a.example/ HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  server.read_head();
  server.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\nX: y\r\n\r\n");
  EXPECT_EQ(client.read_all(), "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nhi");
}

TEST_F(HttpSessionTest, HalfClosedClientGetsItsAnswer) {
  start();
  client.send("POST http://a.example/ HTTP/1.1\r\nHost: a.example\r\nContent-Length: 2\r\n\r\nhi");
  client.end_sending();
  auto server = a.accept();
  server.read_until("hi");
  std::this_thread::sleep_for(50ms);
  server.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nho");
  EXPECT_THAT(client.read_all(), testing::EndsWith("\r\n\r\nho"));
}

TEST_F(HttpSessionTest, ConnectionClose) {
  start();
  client.send("GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\n\r\n");
  auto server = a.accept();
  EXPECT_THAT(server.read_head(), HasSubstr("Connection: close\r\n"));
  server.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nho");
  EXPECT_EQ(client.read_all(), "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nho");
}

// B050
TEST_F(HttpSessionTest, Connect) {
  start();
  client.send("CONNECT a.example:443 HTTP/1.1\r\nHost: a.example:443\r\n\r\nHELLO");
  auto server = a.accept();
  EXPECT_EQ(client.read_head(), "HTTP/1.1 200 Connection established\r\n\r\n");
  EXPECT_EQ(server.read(5), "HELLO");
  EXPECT_TRUE(server.silent());
  server.send("WORLD");
  EXPECT_EQ(client.read(5), "WORLD");
  // What looks like a request is the tunnel's.
  client.send("GET http://a.example/ HTTP/1.1\r\n\r\n");
  EXPECT_EQ(server.read_head(), "GET http://a.example/ HTTP/1.1\r\n\r\n");
  EXPECT_THAT(owner.connects(), ElementsAre("CONNECT a.example:443"));
  ASSERT_EQ(owner.tunnels().size(), 1U);
  EXPECT_EQ(owner.tunnels()[0].from_client, "HELLO");
  EXPECT_EQ(owner.tunnels()[0].target, "a.example:443");
  EXPECT_FALSE(owner.tunnels()[0].upgraded);
  server.close();
}

// B051
TEST_F(HttpSessionTest, LargeHeads) {
  start();
  Peer server;
  exchange(server, "/");
  for (const std::size_t padding : {600, 5'000, 40'000}) {
    client.send("GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\nX-Padding: " + std::string(padding, 'x') + "\r\n\r\n");
    EXPECT_THAT(server.read_head(), HasSubstr(std::string(padding, 'x')));
    server.send("HTTP/1.1 204 No Content\r\nX-Padding: " + std::string(padding, 'y') + "\r\n\r\n");
    EXPECT_THAT(client.read_head(), HasSubstr(std::string(padding, 'y')));
  }
}

TEST_F(HttpSessionTest, WebSocket) {
  start();
  Peer server;
  exchange(server, "/");
  client.send("GET http://a.example/ws HTTP/1.1\r\nHost: a.example\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: k\r\n\r\nearly");
  EXPECT_EQ(server.read_head(), "GET /ws HTTP/1.1\r\nHost: a.example\r\nSec-WebSocket-Key: k\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n");
  EXPECT_TRUE(server.silent());
  server.send("HTTP/1.1 101 Switching Protocols\r\nUpgrade: WebSocket\r\nConnection: upgrade\r\nSec-WebSocket-Accept: x\r\n\r\nframe");
  EXPECT_EQ(client.read_head(), "HTTP/1.1 101 Switching Protocols\r\nSec-WebSocket-Accept: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n");
  EXPECT_EQ(client.read(5), "frame");
  EXPECT_EQ(server.read(5), "early");
  for (int i = 0; i < 10; ++i) {
    client.send("ping" + std::to_string(i));
    EXPECT_EQ(server.read(5), "ping" + std::to_string(i));
    server.send("pong" + std::to_string(i));
    EXPECT_EQ(client.read(5), "pong" + std::to_string(i));
  }
  ASSERT_EQ(owner.tunnels().size(), 1U);
  EXPECT_TRUE(owner.tunnels()[0].upgraded);
  EXPECT_EQ(owner.tunnels()[0].from_server, "frame");
  server.close();
}

TEST_F(HttpSessionTest, WebSocketRefusedByTheServer) {
  start();
  client.send("GET http://a.example/ws HTTP/1.1\r\nHost: a.example\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nGET http://a.example/2 HTTP/1.1\r\nHost: a.example\r\n\r\n");
  auto server = a.accept();
  server.read_head();
  EXPECT_TRUE(server.silent());
  server.send("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
  EXPECT_THAT(client.read_head(), StartsWith("HTTP/1.1 404"));
  EXPECT_EQ(server.read_head(), "GET /2 HTTP/1.1\r\nHost: a.example\r\n\r\n");
  server.send("HTTP/1.1 204 No Content\r\n\r\n");
  EXPECT_THAT(client.read_head(), StartsWith("HTTP/1.1 204"));
  EXPECT_THAT(owner.tunnels(), IsEmpty());
}

TEST_F(HttpSessionTest, AnswerOfARefusal) {
  start();
  client.send("GET http://b.example/ HTTP/1.1\r\nHost: b.example\r\n\r\n");
  EXPECT_EQ(client.read_head(), "HTTP/1.1 403 Forbidden\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: 50\r\nX-Sandy-Blocked: no rule allows it\r\n\r\n");
  EXPECT_EQ(client.read(50), "[sandy] blocked: b.example:80 (no rule allows it)\n");
}

TEST_F(HttpSessionTest, AnswerWhereTheServerIsNotReached) {
  owner.refuse("slow.example", {504, "no answer"});
  start();
  client.send("GET http://slow.example/ HTTP/1.1\r\nHost: slow.example\r\n\r\n");
  EXPECT_THAT(client.read_all(), testing::AllOf(StartsWith("HTTP/1.1 504 Gateway Timeout\r\n"), HasSubstr("Connection: close\r\n"), testing::EndsWith("\r\n\r\n[sandy] no answer\n")));
}

TEST_F(HttpSessionTest, RefusedAndOn) {
  start();
  const std::string body = "[sandy] blocked: b.example:80 (no rule allows it)\n";
  client.send("GET http://b.example/ HTTP/1.1\r\nHost: b.example\r\n\r\nHEAD http://b.example/ HTTP/1.1\r\nHost: b.example\r\n\r\n");
  EXPECT_THAT(client.read_head(), HasSubstr("Content-Length: " + std::to_string(body.size())));
  EXPECT_EQ(client.read(body.size()), body);
  EXPECT_THAT(client.read_head(), HasSubstr("Content-Length: " + std::to_string(body.size())));
  Peer server;
  exchange(server, "/");
  // With a body it is the last.
  client.send("POST http://b.example/ HTTP/1.1\r\nHost: b.example\r\nContent-Length: 5\r\n\r\nGET /GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n");
  EXPECT_THAT(client.read_head(), HasSubstr("Connection: close\r\n"));
  EXPECT_EQ(client.read_all(), body);
  EXPECT_TRUE(server.ends());
}

TEST_F(HttpSessionTest, RefusedConnect) {
  start();
  client.send("CONNECT b.example:443 HTTP/1.1\r\nHost: b.example:443\r\n\r\nGET http://a.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n");
  EXPECT_THAT(client.read_all(), testing::AllOf(StartsWith("HTTP/1.1 403"), testing::EndsWith("[sandy] blocked: b.example:443 (no rule allows it)\n")));
  EXPECT_TRUE(a.nobody_waits());
}

TEST_F(HttpSessionTest, InThePlaceOfAServer) {
  tcp::socket upstream(io);
  const tcp::endpoint endpoint(asio::ip::address_v4::loopback(), a.port());
  upstream.connect(endpoint);
  start(authority("a.example:80"), "GET /1 HTTP/1.1\r\nHo", std::move(upstream));
  auto server = a.accept();
  client.send("st: A.example\r\n\r\n");
  EXPECT_EQ(server.read_head(), "GET /1 HTTP/1.1\r\nHost: a.example\r\n\r\n");
  server.send("HTTP/1.1 204 No Content\r\n\r\n");
  client.read_head();
  exchange(server, "/2");  // in absolute form
  EXPECT_THAT(owner.connects(), IsEmpty());
  client.send("OPTIONS * HTTP/1.1\r\nHost: a.example:80\r\n\r\n");
  EXPECT_EQ(server.read_head(), "OPTIONS * HTTP/1.1\r\nHost: a.example\r\n\r\n");
  server.send("HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n");
  EXPECT_EQ(client.read_head(), "HTTP/1.1 204 No Content\r\n\r\n");
  EXPECT_TRUE(server.ends());
  // The server's end is not the client's.
  Peer again;
  exchange(again, "/3");
  EXPECT_THAT(owner.connects(), ElementsAre("a.example:80"));
}

TEST_F(HttpSessionTest, AServerThatClosedWhileIdle) {
  start();
  Peer server;
  exchange(server, "/1");
  server.close();
  Peer again;
  exchange(again, "/2");
  // And one that closes as the request comes: what may be sent twice is.
  client.send("GET http://a.example/3 HTTP/1.1\r\nHost: a.example\r\n\r\n");
  again.read_head();
  again.close();
  auto third = a.accept();
  EXPECT_THAT(third.read_head(), StartsWith("GET /3 "));
  third.send("HTTP/1.1 204 No Content\r\n\r\n");
  EXPECT_THAT(client.read_head(), StartsWith("HTTP/1.1 204"));
  client.send("POST http://a.example/4 HTTP/1.1\r\nHost: a.example\r\nContent-Length: 0\r\n\r\n");
  third.read_head();
  third.close();
  EXPECT_THAT(client.read_all(), StartsWith("HTTP/1.1 502"));
  EXPECT_TRUE(a.nobody_waits());
}

}  // namespace
}  // namespace sandy::proxy
