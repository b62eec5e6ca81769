#include "host/waiting_launcher.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/launch_orders.h"
#include "host/children.h"
#include "host/programs.h"

namespace sandy::host {
namespace {

constexpr const char* kWhat = "sandy-launch";

Result<void> send_packet(int socket, const void* bytes, std::size_t size, const UniqueFd* descriptors, std::size_t count) {
  iovec part{const_cast<void*>(bytes), size};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  alignas(cmsghdr) char control[CMSG_SPACE(kDescriptorsAtOnce * sizeof(int))] = {};
  if (count > 0) {
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(count * sizeof(int));
    cmsghdr* const header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(count * sizeof(int));
    for (std::size_t i = 0; i < count; ++i) {
      const int fd = descriptors[i].get();
      std::memcpy(CMSG_DATA(header) + i * sizeof(int), &fd, sizeof fd);
    }
  }
  ssize_t n = 0;
  while ((n = ::sendmsg(socket, &message, MSG_NOSIGNAL)) < 0 && errno == EINTR) {}
  if (n != static_cast<ssize_t>(size)) return fail(kWhat, "can't be told what to start: " + errno_text(errno));
  return {};
}

}  // namespace

Result<std::unique_ptr<WaitingLauncher>> WaitingLauncher::start() {
  auto program = own_program("sandy-launch");
  if (!program) return std::unexpected(program.error());
  std::unique_ptr<WaitingLauncher> self(new WaitingLauncher);
  int sockets[2], pipe[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) != 0) return fail("socketpair", errno_text(errno));
  self->orders_.reset(sockets[0]);
  const UniqueFd low(sockets[1]);
  if (::pipe2(pipe, O_CLOEXEC) != 0) return fail("pipe", errno_text(errno));
  self->messages_.reset(pipe[0]);
  const UniqueFd low_messages(pipe[1]);
  // Out of the way of the numbers that the child gets them under.
  const UniqueFd orders(::fcntl(low.get(), F_DUPFD_CLOEXEC, kFirstDescriptor + 1)), messages(::fcntl(low_messages.get(), F_DUPFD_CLOEXEC, kFirstDescriptor + 1));
  if (!orders || !messages) return fail("descriptors", errno_text(errno), "raise the limit on open files (ulimit -n)");
  Spawn spawn;
  spawn.open_null(0);
  spawn.open_null(1);
  spawn.dup(messages.get(), 2);
  spawn.dup(orders.get(), kFirstDescriptor);
  auto child = spawn.run(*program, {kWhat, "--wait", std::to_string(kFirstDescriptor)});
  if (!child) return std::unexpected(child.error());
  self->child_ = std::move(*child);
  return self;
}

WaitingLauncher::~WaitingLauncher() {
  if (child_.pid >= 0) forget_child(child_.pid);
}

void WaitingLauncher::dismiss() {
  const LaunchOrdersHead nothing;
  (void)send_packet(orders_.get(), &nothing, sizeof nothing, nullptr, 0);
  orders_.reset();
}

Child WaitingLauncher::take() {
  Child out = std::move(child_);
  child_.pid = -1;
  return out;
}

Result<void> WaitingLauncher::give(LaunchOrders orders) {
  std::string words(kWhat);
  words += '\0';
  for (const auto& word : orders.words) words += word + '\0';
  const LaunchOrdersHead head{static_cast<std::uint32_t>(orders.descriptors.size()), static_cast<std::uint32_t>(words.size())};
  if (auto sent = send_packet(orders_.get(), &head, sizeof head, nullptr, 0); !sent) return sent;
  for (std::size_t at = 0; at < orders.descriptors.size(); at += kDescriptorsAtOnce) {
    const auto count = std::min<std::size_t>(orders.descriptors.size() - at, kDescriptorsAtOnce);
    if (auto sent = send_packet(orders_.get(), "", 1, &orders.descriptors[at], count); !sent) return sent;
  }
  for (std::size_t at = 0; at < words.size(); at += kWordBytesAtOnce) {
    if (auto sent = send_packet(orders_.get(), words.data() + at, std::min<std::size_t>(words.size() - at, kWordBytesAtOnce), nullptr, 0); !sent) return sent;
  }
  orders_.reset();
  return {};
}

}  // namespace sandy::host
