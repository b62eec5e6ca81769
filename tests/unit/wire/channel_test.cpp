#include "session/wire/channel.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <functional>
#include <thread>

namespace sandy::wire {
namespace {

using namespace std::chrono_literals;

struct Pair {
  UniqueFd ours, theirs;
};

Pair make_pair() {
  int fds[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0) std::abort();
  return {UniqueFd(fds[0]), UniqueFd(fds[1])};
}

std::string frame_bytes(std::uint32_t id, const std::string& payload = {}) { return encode_head({{"id", id}, {"op", "data"}}, payload.size()) + payload; }

class ChannelTest : public ::testing::Test {
 protected:
  ChannelTest() {
    auto pair = make_pair();
    channel = Channel::make(io.get_executor(), std::move(pair.ours), kMaxReplyPayload);
    peer = std::move(pair.theirs);
  }
  ~ChannelTest() override {
    channel->close();
    run();
  }

  // Runs the loop until nothing is left to do, or the time is up.
  void run(std::chrono::milliseconds limit = 5s) {
    io.restart();
    io.run_for(limit);
  }
  void read_one() {
    asio::co_spawn(io, [this]() -> asio::awaitable<void> {
      auto frame = co_await channel->read();
      results.push_back(std::move(frame));
    }, asio::detached);
  }
  void write_peer(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t n = ::send(peer.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      ASSERT_GT(n, 0);
      bytes.remove_prefix(static_cast<std::size_t>(n));
    }
  }
  std::string read_peer(std::size_t bytes) {
    std::string out(bytes, '\0');
    std::size_t have = 0;
    while (have < bytes) {
      const ssize_t n = ::recv(peer.get(), out.data() + have, bytes - have, 0);
      if (n <= 0) break;
      have += static_cast<std::size_t>(n);
    }
    out.resize(have);
    return out;
  }

  asio::io_context io;
  std::shared_ptr<Channel> channel;
  UniqueFd peer;
  std::vector<Result<Frame>> results;
};

TEST_F(ChannelTest, FramesThatComeByteByByte) {
  const std::string bytes = frame_bytes(1, "payload") + frame_bytes(2);
  read_one();
  for (const char byte : bytes) {
    write_peer(std::string_view(&byte, 1));
    io.restart();
    io.poll();
  }
  read_one();
  run();
  ASSERT_EQ(results.size(), 2U);
  ASSERT_TRUE(results[0] && results[1]);
  EXPECT_EQ(results[0]->payload, "payload");
  EXPECT_EQ(results[1]->id, 2U);
  EXPECT_EQ(results[1]->payload, "");
}

TEST_F(ChannelTest, ManyFramesInOnePiece) {
  std::string bytes;
  for (std::uint32_t id = 1; id <= 500; ++id) bytes += frame_bytes(id, std::string(id % 7, 'x'));
  write_peer(bytes);
  for (int i = 0; i < 500; ++i) {
    read_one();
    run();
  }
  ASSERT_EQ(results.size(), 500U);
  for (std::uint32_t id = 1; id <= 500; ++id) {
    ASSERT_TRUE(results[id - 1]);
    EXPECT_EQ(results[id - 1]->id, id);
    EXPECT_EQ(results[id - 1]->payload.size(), id % 7);
  }
}

TEST_F(ChannelTest, TheLargestPayload) {
  std::string payload(kMaxReplyPayload, '\0');
  for (std::size_t i = 0; i < payload.size(); ++i) payload[i] = static_cast<char>(i * 31 >> 3);
  std::thread writer([&] { write_peer(frame_bytes(1, payload)); });
  read_one();
  run();
  writer.join();
  ASSERT_EQ(results.size(), 1U);
  ASSERT_TRUE(results[0]) << results[0].error().text();
  EXPECT_TRUE(results[0]->payload == payload);
}

TEST_F(ChannelTest, OverTheLimitsEndsTheConnection) {
  write_peer(encode_head({{"id", 1}, {"op", "x"}}, kMaxReplyPayload + 1));
  read_one();
  run();
  ASSERT_EQ(results.size(), 1U);
  ASSERT_FALSE(results[0]);
  EXPECT_EQ(results[0].error().why, "a frame is over the limits");
}

TEST_F(ChannelTest, ABadHeaderIsAnError) {
  write_peer(std::string("\x02\x00\x00\x00\x00\x00\x00\x00{}", 10));
  read_one();
  run();
  ASSERT_EQ(results.size(), 1U);
  EXPECT_FALSE(results[0]);
}

TEST_F(ChannelTest, AClosedPeer) {
  peer.reset();
  read_one();
  run();
  ASSERT_EQ(results.size(), 1U);
  ASSERT_FALSE(results[0]);
  EXPECT_EQ(results[0].error().why, "closed");
}

TEST_F(ChannelTest, APeerThatClosesWithinAFrame) {
  const std::string bytes = frame_bytes(1, "payload");
  for (const std::size_t length : {std::size_t{3}, std::size_t{8}, std::size_t{12}, bytes.size() - 1}) {
    auto pair = make_pair();
    channel = Channel::make(io.get_executor(), std::move(pair.ours), kMaxReplyPayload);
    peer = std::move(pair.theirs);
    write_peer(std::string_view(bytes).substr(0, length));
    peer.reset();
    read_one();
    run();
    ASSERT_FALSE(results.back());
    EXPECT_EQ(results.back().error().why, "closed in the middle of a frame") << length;
  }
}

TEST_F(ChannelTest, CloseEndsAReaderThatWaits) {
  read_one();
  io.poll();
  EXPECT_TRUE(results.empty());
  channel->close();
  run();
  ASSERT_EQ(results.size(), 1U);
  EXPECT_FALSE(results[0]);
  EXPECT_FALSE(channel->is_open());
}

TEST_F(ChannelTest, PostedFramesKeepTheirOrderWhenThePeerIsSlow) {
  std::string expected;
  for (std::uint32_t id = 1; id <= 40; ++id) {
    const std::string payload((id % 3) * 100'000 + id, static_cast<char>('a' + id % 26));
    expected += frame_bytes(id, payload);
    channel->post({{"id", id}, {"op", "data"}}, payload);
  }
  EXPECT_GT(channel->queued_bytes(), 0U);  // more than a socket holds
  std::string got;
  std::thread reader([&] { got = read_peer(expected.size()); });
  run();
  reader.join();
  EXPECT_TRUE(got == expected);
  EXPECT_EQ(channel->queued_bytes(), 0U);
}

TEST_F(ChannelTest, ManySmallFramesInOneCall) {
  std::vector<std::pair<Json, std::string>> frames;
  std::string expected;
  for (std::uint32_t id = 1; id <= 100; ++id) {
    const std::string payload(id % 2 == 0 ? 5000 : 10, 'p');
    frames.emplace_back(Json{{"id", id}, {"op", "data"}}, payload);
    expected += frame_bytes(id, payload);
  }
  std::string got;
  std::thread reader([&] { got = read_peer(expected.size()); });
  channel->post_all(std::move(frames));
  run();
  reader.join();
  EXPECT_TRUE(got == expected);
}

TEST_F(ChannelTest, SendWaitsUntilThePeerTookIt) {
  const std::string payload(kMaxReplyPayload, 'x');
  bool sent = false;
  asio::co_spawn(io, [&]() -> asio::awaitable<void> { sent = co_await channel->send(event(1, "stdout"), payload); }, asio::detached);
  io.run_for(50ms);
  EXPECT_FALSE(sent);
  EXPECT_GT(channel->queued_bytes(), 0U);
  std::thread reader([&] { (void)read_peer(encode_head(event(1, "stdout"), payload.size()).size() + payload.size()); });
  run();
  reader.join();
  EXPECT_TRUE(sent);
}

TEST_F(ChannelTest, SendToAPeerThatIsGoneFails) {
  std::optional<bool> sent;
  asio::co_spawn(io, [&]() -> asio::awaitable<void> { sent = co_await channel->send(event(1, "stdout"), std::string(kMaxReplyPayload, 'x')); }, asio::detached);
  io.run_for(20ms);
  EXPECT_FALSE(sent);
  peer.reset();
  run();
  EXPECT_EQ(sent, false);
  EXPECT_EQ(channel->queued_bytes(), 0U);
  channel->post(event(2, "end"));  // no signal, no growth
  EXPECT_EQ(channel->queued_bytes(), 0U);
}

TEST_F(ChannelTest, CloseEndsASenderThatWaits) {
  std::optional<bool> sent;
  asio::co_spawn(io, [&]() -> asio::awaitable<void> { sent = co_await channel->send(event(1, "stdout"), std::string(kMaxReplyPayload, 'x')); }, asio::detached);
  io.run_for(20ms);
  channel->close();
  run();
  EXPECT_EQ(sent, false);
}

void send_fds(int socket, std::string_view bytes, const std::vector<int>& fds) {
  iovec iov{const_cast<char*>(bytes.data()), bytes.size()};
  std::vector<char> control(CMSG_SPACE(sizeof(int) * fds.size()));
  msghdr message{};
  message.msg_iov = &iov;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int) * fds.size());
  std::memcpy(CMSG_DATA(header), fds.data(), sizeof(int) * fds.size());
  ASSERT_EQ(::sendmsg(socket, &message, MSG_NOSIGNAL), static_cast<ssize_t>(bytes.size()));
}

TEST_F(ChannelTest, DescriptorsComeWithTheirFrame) {
  const UniqueFd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  send_fds(peer.get(), frame_bytes(1), {null.get()});
  read_one();
  run();
  ASSERT_TRUE(results.at(0));
  auto fds = channel->take_fds();
  ASSERT_EQ(fds.size(), 1U);
  EXPECT_NE(::fcntl(fds[0].get(), F_GETFD) & FD_CLOEXEC, 0);
  struct stat a{}, b{};
  ASSERT_EQ(::fstat(fds[0].get(), &a), 0);
  ASSERT_EQ(::fstat(null.get(), &b), 0);
  EXPECT_EQ(a.st_rdev, b.st_rdev);
  EXPECT_TRUE(channel->take_fds().empty());
}

int open_descriptors() {
  int count = 0;
  for (int fd = 0; fd < 4096; ++fd) count += ::fcntl(fd, F_GETFD) >= 0 ? 1 : 0;
  return count;
}

// The agent is hostile: it must not be able to fill its peer's descriptor table.
TEST_F(ChannelTest, DescriptorsThatNobodyTakesDoNotPileUp) {
  const UniqueFd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  const int before = open_descriptors();
  for (std::uint32_t id = 1; id <= 100; ++id) {
    send_fds(peer.get(), frame_bytes(id), {null.get(), null.get(), null.get()});
    read_one();
    run();
  }
  EXPECT_LE(open_descriptors(), before + 8);
  // More in one message than are taken: the kernel closes the rest.
  send_fds(peer.get(), frame_bytes(101), std::vector<int>(100, null.get()));
  read_one();
  run();
  EXPECT_LE(open_descriptors(), before + 8);
  EXPECT_EQ(results.size(), 101U);
}

// Reads seldom end where a frame does. What was read must be given up all the same, or a peer that goes on sending fills the memory.
TEST_F(ChannelTest, InputDoesNotPileUp) {
  std::string burst;
  while (burst.size() < 1'000'000) burst += frame_bytes(static_cast<std::uint32_t>(burst.size()), std::string(burst.size() % 90, 'x'));
  const std::size_t rounds = 2;
  std::thread writer([&] {
    for (std::size_t i = 0; i < rounds; ++i) write_peer(burst);
    peer.reset();
  });
  std::size_t most = 0, frames = 0;
  asio::co_spawn(io, [&]() -> asio::awaitable<void> {
    while (auto frame = co_await channel->read()) {
      ++frames;
      most = std::max(most, channel->buffered_bytes());
    }
  }, asio::detached);
  run(30s);
  writer.join();
  EXPECT_GT(frames, 10'000U);
  EXPECT_LE(most, 512U * 1024);
}

}  // namespace
}  // namespace sandy::wire
