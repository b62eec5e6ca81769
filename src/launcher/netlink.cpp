#include "launcher/netlink.h"

#include <arpa/inet.h>
#include <linux/netlink.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "launcher/die.h"

namespace sandy::launcher {
namespace {

constexpr std::size_t padded(std::size_t size) { return (size + 3) & ~std::size_t{3}; }

}  // namespace

void NetlinkBatch::append(const void* data, std::size_t size) {
  // The messages are ours and of known size: more of them than fit is a fault of this program.
  if (size_ + padded(size) > kMaxBytes) abort();
  memset(bytes_ + size_, 0, padded(size));
  memcpy(bytes_ + size_, data, size);
  size_ += padded(size);
}

void NetlinkBatch::start(const char* purpose, uint16_t type, uint16_t flags) {
  finish();
  if (count_ == kMaxMessages) abort();
  message_ = size_;
  purposes_[count_] = purpose;
  nlmsghdr header{};
  header.nlmsg_type = type;
  header.nlmsg_flags = static_cast<uint16_t>(NLM_F_REQUEST | flags);
  header.nlmsg_seq = ++count_;
  append(&header, sizeof header);
}

void NetlinkBatch::finish() {
  if (count_ > 0) reinterpret_cast<nlmsghdr*>(bytes_ + message_)->nlmsg_len = static_cast<uint32_t>(size_ - message_);
}

void NetlinkBatch::attribute(uint16_t type, const void* data, std::size_t size) {
  const nlattr header{static_cast<uint16_t>(sizeof(nlattr) + size), type};
  append(&header, sizeof header);
  append(data, size);
}

void NetlinkBatch::text(uint16_t type, const char* value) { attribute(type, value, strlen(value) + 1); }

void NetlinkBatch::number(uint16_t type, uint32_t value) { attribute(type, &value, sizeof value); }

void NetlinkBatch::network_number(uint16_t type, uint32_t value) { number(type, htonl(value)); }

std::size_t NetlinkBatch::open(uint16_t type) {
  const std::size_t at = size_;
  const nlattr header{0, static_cast<uint16_t>(type | NLA_F_NESTED)};
  append(&header, sizeof header);
  return at;
}

void NetlinkBatch::close(std::size_t nested) {
  reinterpret_cast<nlattr*>(bytes_ + nested)->nla_len = static_cast<uint16_t>(size_ - nested);
}

void NetlinkBatch::commit(int protocol) {
  finish();
  const int socket = ::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol);
  if (socket < 0) die("network: a netlink socket");
  sockaddr_nl kernel{};
  kernel.nl_family = AF_NETLINK;
  if (sendto(socket, bytes_, size_, 0, reinterpret_cast<sockaddr*>(&kernel), sizeof kernel) != static_cast<ssize_t>(size_)) die("network: netlink");
  alignas(nlmsghdr) char answer[8'192];
  while (true) {
    const ssize_t n = recv(socket, answer, sizeof answer, MSG_DONTWAIT);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) break;
    if (n <= 0) die("network: netlink");
    auto left = static_cast<unsigned>(n);
    for (const nlmsghdr* message = reinterpret_cast<nlmsghdr*>(answer); NLMSG_OK(message, left); message = NLMSG_NEXT(message, left)) {
      if (message->nlmsg_type != NLMSG_ERROR) continue;
      const auto* result = reinterpret_cast<const nlmsgerr*>(NLMSG_DATA(message));
      if (result->error == 0) continue;
      errno = -result->error;
      const uint32_t number = message->nlmsg_seq;
      die(number >= 1 && number <= count_ ? purposes_[number - 1] : "network: netlink");
    }
  }
  ::close(socket);
}

}  // namespace sandy::launcher
