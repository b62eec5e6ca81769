// Messages to the kernel over netlink(7), many in one go: interfaces, addresses and routes (rtnetlink(7)), and nftables' objects
// (linux/netfilter/nf_tables.h). No library: Debian has no static libmnl, on which libnftnl builds, and this is all that is needed of it.
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include <cstddef>

namespace sandy::launcher {

// Builds messages one after another. A text that says what a message does is kept for it, for when the kernel refuses it.
class NetlinkBatch {
 public:
  // Starts a message, with `header` (struct ifinfomsg, nfgenmsg, ...) after the netlink header.
  template <typename Header>
  void begin(const char* purpose, uint16_t type, uint16_t flags, const Header& header) {
    start(purpose, type, flags);
    append(&header, sizeof header);
  }

  void attribute(uint16_t type, const void* data, std::size_t size);
  void text(uint16_t type, const char* value);             // with its NUL
  void number(uint16_t type, uint32_t value);              // in this machine's byte order, as rtnetlink has it
  void network_number(uint16_t type, uint32_t value);      // big-endian, as nftables has it
  std::size_t open(uint16_t type);                         // a nested attribute, until close()
  void close(std::size_t nested);
  void append(const void* data, std::size_t size);         // raw, padded: what a nested attribute starts with

  // Sends all to a new socket of `protocol` (NETLINK_ROUTE, NETLINK_NETFILTER) and reads the answers: the kernel works a message off before
  // sendmsg(2) returns. Ends the program with the purpose of the first message that was refused.
  void commit(int protocol);

 private:
  static constexpr std::size_t kMaxBytes = 16'384, kMaxMessages = 48;

  void start(const char* purpose, uint16_t type, uint16_t flags);
  void finish();

  alignas(8) char bytes_[kMaxBytes];
  std::size_t size_ = 0, message_ = 0;  // message_: where the current one starts
  const char* purposes_[kMaxMessages];
  uint32_t count_ = 0;
};

}  // namespace sandy::launcher
