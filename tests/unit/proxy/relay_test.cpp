#include "proxy/relay.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>

namespace sandy::proxy {
namespace {

using namespace std::chrono_literals;

struct Ends {
  tcp::socket ours, theirs;
};

// The two ends of a connection over loopback.
Ends connected(asio::io_context& io) {
  tcp::acceptor acceptor(io, tcp::endpoint(asio::ip::address_v4::loopback(), 0));
  tcp::socket theirs(io);
  theirs.connect(acceptor.local_endpoint());
  return {acceptor.accept(), std::move(theirs)};
}

class Relay : public testing::Test {
 protected:
  Relay() : client(connected(io)), server(connected(io)) {}

  void start(std::chrono::seconds idle = 60s) {
    asio::co_spawn(io, relay(client.ours, server.ours, up, down, idle), [this](std::exception_ptr, bool whole_) {
      done = true;
      whole = whole_;
      if (!whole) {
        reset(client.ours);
        reset(server.ours);
      }
      client.ours.close();
      server.ours.close();
    });
  }
  void run(std::chrono::milliseconds time = 5s) { io.run_for(time); }
  // All that comes until the end.
  static std::string rest(tcp::socket& socket) {
    std::string out;
    boost::system::error_code error;
    asio::read(socket, asio::dynamic_buffer(out), error);
    return out;
  }

  asio::io_context io;
  Ends client, server;
  Stream up, down;
  bool done = false, whole = false;
};

TEST_F(Relay, BothWaysUntilBothHaveEnded) {
  asio::write(client.theirs, asio::buffer(std::string("question")));
  asio::write(server.theirs, asio::buffer(std::string("answer")));
  client.theirs.shutdown(tcp::socket::shutdown_send);
  start();
  run(200ms);
  EXPECT_FALSE(done) << "the server has not ended";
  server.theirs.shutdown(tcp::socket::shutdown_send);
  run();
  EXPECT_TRUE(done);
  EXPECT_EQ(rest(server.theirs), "question");
  EXPECT_EQ(rest(client.theirs), "answer");
  EXPECT_EQ(up.bytes, 8U);
  EXPECT_EQ(down.bytes, 6U);
}

TEST_F(Relay, WhatWasReadBeforeGoesFirst) {
  up.pending = "held ";
  asio::write(client.theirs, asio::buffer(std::string("and more")));
  client.theirs.close();
  server.theirs.shutdown(tcp::socket::shutdown_send);
  start();
  run();
  EXPECT_TRUE(done);
  EXPECT_EQ(rest(server.theirs), "held and more");
}

TEST_F(Relay, AResetOfOneEndsTheOther) {
  start();
  run(50ms);
  reset(server.theirs);
  run();
  EXPECT_TRUE(done);
  boost::system::error_code error;
  char byte = 0;
  client.theirs.read_some(asio::buffer(&byte, 1), error);
  EXPECT_EQ(error, asio::error::connection_reset);
}

TEST_F(Relay, WithoutAByteItIsOver) {
  start(1s);
  run();
  EXPECT_TRUE(done);
  boost::system::error_code error;
  char byte = 0;
  client.theirs.read_some(asio::buffer(&byte, 1), error);
  EXPECT_TRUE(error);
}

TEST_F(Relay, ASlowReaderHoldsTheWriterUpAndLosesNothing) {
  const std::string block(1 << 20, 'x');
  client.theirs.non_blocking(true);
  start();
  std::size_t sent = 0;
  for (int turn = 0; turn < 400; ++turn) {
    boost::system::error_code error;
    sent += client.theirs.write_some(asio::buffer(block), error);
    io.restart();
    io.run_for(1ms);
  }
  // The kernel's buffers are full, and one read's worth is here.
  EXPECT_LE(up.pending.size(), std::size_t{1} << 20);
  EXPECT_LT(sent, std::size_t{64} << 20);
  client.theirs.shutdown(tcp::socket::shutdown_send);
  server.theirs.shutdown(tcp::socket::shutdown_send);
  std::size_t received = 0;
  server.theirs.non_blocking(true);
  std::string buffer(1 << 20, 0);
  for (int turn = 0; turn < 4'000 && received < sent; ++turn) {
    boost::system::error_code error;
    received += server.theirs.read_some(asio::buffer(buffer), error);
    io.restart();
    io.run_for(1ms);
  }
  EXPECT_EQ(received, sent);
}

}  // namespace
}  // namespace sandy::proxy
