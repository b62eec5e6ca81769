#include "session/wire/channel.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <iterator>

#include "base/passed_fds.h"

namespace sandy::wire {
namespace {

constexpr std::size_t kReadBytes = 65'536;
constexpr std::size_t kMaxFds = 4;  // SCM_RIGHTS descriptors of one message
constexpr auto kNoError = asio::as_tuple(asio::use_awaitable);

}  // namespace

Channel::Channel(asio::any_io_executor executor, UniqueFd socket, std::size_t max_payload)
    : socket_(executor, socket.release()),
      drained_(executor, asio::steady_timer::time_point::max()),
      max_payload_(max_payload) {
  socket_.non_blocking(true);
}

asio::awaitable<bool> Channel::fill() {
  if (input_start_ > 0 && input_start_ == input_.size()) {
    input_.clear();
    input_start_ = 0;
    if (input_.capacity() > 4 * kReadBytes) input_.shrink_to_fit();
  } else if (input_start_ >= kReadBytes) {
    // Reads seldom end where a frame does: what was consumed goes, or a peer that never pauses would fill the memory.
    input_.erase(0, input_start_);
    input_start_ = 0;
  }
  co_return co_await fill(input_, kReadBytes);
}

ssize_t Channel::receive(char* to, std::size_t size) {
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int) * kMaxFds)> control;
  iovec iov{to, size};
  msghdr message{};
  message.msg_iov = &iov;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  const ssize_t n = ::recvmsg(socket_.native_handle(), &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
  if (n < 0) return n;
  for (auto& received : passed_fds(message)) {
    // Nobody takes those of a peer that isn't asked for any: they must not pile up.
    if (fds_.size() < max_fds_) fds_.push_back(std::move(received));
  }
  return n;
}

asio::awaitable<bool> Channel::fill(std::string& out, std::size_t most) {
  while (true) {
    const std::size_t have = out.size();
    ssize_t n = -1;
    // resize_and_overwrite (C++23) keeps the new bytes from being zeroed first.
    out.resize_and_overwrite(have + most, [&](char* data, std::size_t) {
      n = receive(data + have, most);
      return have + (n > 0 ? static_cast<std::size_t>(n) : 0);
    });
    if (n > 0) co_return true;
    if (n == 0) co_return false;
    if (errno == EINTR) continue;
    if (errno != EAGAIN && errno != EWOULDBLOCK) co_return false;
    const auto [error] = co_await socket_.async_wait(asio::posix::descriptor_base::wait_read, kNoError);
    if (error || !socket_.is_open()) co_return false;
  }
}

asio::awaitable<Result<Frame>> Channel::read() {
  auto available = [&] { return std::string_view(input_).substr(input_start_); };
  while (available().size() < kPrefixBytes) {
    if (!co_await fill()) co_return fail("connection", available().empty() ? "closed" : "closed in the middle of a frame");
  }
  const auto sizes = read_sizes(available(), max_payload_);
  if (!sizes) co_return fail("connection", "a frame is over the limits");
  while (available().size() < kPrefixBytes + sizes->header) {
    if (!co_await fill()) co_return fail("connection", "closed in the middle of a frame");
  }
  auto frame = parse_header(available().substr(kPrefixBytes, sizes->header));
  if (!frame) co_return std::unexpected(frame.error());
  input_start_ += kPrefixBytes + sizes->header;
  frame->payload.reserve(sizes->payload);
  while (frame->payload.size() < sizes->payload) {
    const std::size_t missing = sizes->payload - frame->payload.size();
    // A large one goes where it is to be, and not through the buffer. No descriptors of a later frame come along: they come with that frame's first byte.
    if (available().empty() && missing >= kReadBytes) {
      if (!co_await fill(frame->payload, missing)) co_return fail("connection", "closed in the middle of a frame");
      continue;
    }
    if (available().empty() && !co_await fill()) co_return fail("connection", "closed in the middle of a frame");
    const auto piece = available().substr(0, missing);
    frame->payload += piece;
    input_start_ += piece.size();
  }
  co_return std::move(*frame);
}

ssize_t Channel::write_some() {
  std::array<iovec, 16> iov{};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int) * kMaxFds)> control{};
  std::size_t count = 0;
  for (std::size_t i = 0; i < output_.size() && count < iov.size(); ++i, ++count) {
    // A message has its descriptors with its first byte: those of a later one start a message of their own.
    if (i > 0 && (!output_[i].fds.empty() || !output_[0].fds.empty())) break;
    const std::size_t skip = i == 0 ? output_offset_ : 0;
    iov[count] = {output_[i].bytes.data() + skip, output_[i].bytes.size() - skip};
  }
  msghdr message{};
  message.msg_iov = iov.data();
  message.msg_iovlen = count;
  auto& fds = output_.front().fds;
  if (!fds.empty()) {
    message.msg_control = control.data();
    message.msg_controllen = CMSG_SPACE(sizeof(int) * fds.size());
    cmsghdr* const header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int) * fds.size());
    for (std::size_t i = 0; i < fds.size(); ++i) {
      const int fd = fds[i].get();
      std::memcpy(CMSG_DATA(header) + i * sizeof fd, &fd, sizeof fd);
    }
  }
  const ssize_t n = ::sendmsg(socket_.native_handle(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
  if (n > 0) fds.clear();
  return n;
}

void Channel::flush() {
  while (!output_.empty() && !broken_) {
    const ssize_t n = write_some();
    if (n < 0) {
      if (errno == EINTR) continue;
      if (errno == EAGAIN || errno == EWOULDBLOCK) return;
      broken_ = true;
      break;
    }
    auto left = static_cast<std::size_t>(n);
    queued_ -= left;
    while (!output_.empty() && left >= output_.front().bytes.size() - output_offset_) {
      left -= output_.front().bytes.size() - output_offset_;
      output_offset_ = 0;
      output_.pop_front();
    }
    output_offset_ += left;
  }
  if (broken_) {
    output_.clear();
    queued_ = output_offset_ = 0;
  }
  if (output_.empty()) drained_.cancel();
}

// `self` keeps the channel alive while its output is on the way.
asio::awaitable<void> Channel::drain(std::shared_ptr<Channel> self) {
  while (!output_.empty() && !broken_) {
    const auto [error] = co_await socket_.async_wait(asio::posix::descriptor_base::wait_write, kNoError);
    if (error || !socket_.is_open()) broken_ = true;
    flush();
  }
  self->draining_ = false;
}

void Channel::enqueue(Output output) {
  queued_ += output.bytes.size();
  output_.push_back(std::move(output));
}

void Channel::start_writing(bool was_empty) {
  if (was_empty) flush();
  if (!output_.empty() && !draining_) {
    draining_ = true;
    asio::co_spawn(socket_.get_executor(), drain(shared_from_this()), asio::detached);
  }
}

void Channel::post_all(std::vector<std::pair<Json, std::string>> frames) {
  if (broken_ || !socket_.is_open()) return;
  const bool was_empty = output_.empty();
  for (auto& [header, payload] : frames) {
    Output head{encode_head(header, payload.size()), {}};
    if (payload.size() <= 4096) {
      head.bytes += payload;
      payload.clear();
    }
    enqueue(std::move(head));
    if (!payload.empty()) enqueue({std::move(payload), {}});
  }
  start_writing(was_empty);
}

void Channel::post_with(const Json& header, std::string_view payload, std::vector<UniqueFd> fds) {
  if (broken_ || !socket_.is_open()) return;
  const bool was_empty = output_.empty();
  if (fds.size() > kMaxFds) return;  // the caller's fault; the peer says what it lacks
  Json counted = header;
  counted["fds"] = fds.size();
  Output output{encode_head(counted, payload.size()), std::move(fds)};
  output.bytes += payload;
  enqueue(std::move(output));
  start_writing(was_empty);
}

void Channel::post(const Json& header, std::string_view payload) {
  std::vector<std::pair<Json, std::string>> frames;
  frames.emplace_back(header, std::string(payload));
  post_all(std::move(frames));
}

asio::awaitable<bool> Channel::send(Json header, std::string payload) {
  std::vector<std::pair<Json, std::string>> frames;
  frames.emplace_back(std::move(header), std::move(payload));
  post_all(std::move(frames));
  while (!output_.empty() && !broken_) co_await drained_.async_wait(kNoError);
  co_return !broken_ && socket_.is_open();
}

std::vector<UniqueFd> Channel::take_fds(std::size_t count) {
  count = std::min(count, fds_.size());
  const auto end = fds_.begin() + static_cast<std::ptrdiff_t>(count);
  std::vector<UniqueFd> out(std::make_move_iterator(fds_.begin()), std::make_move_iterator(end));
  fds_.erase(fds_.begin(), end);
  return out;
}

bool Channel::peer_closed() {
  char byte = 0;
  return !socket_.is_open() || ::recv(socket_.native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

void Channel::close() {
  broken_ = true;
  boost::system::error_code ignored;
  socket_.close(ignored);
  drained_.cancel();
}

}  // namespace sandy::wire
