// What is sent to a sandy-launch that waits (`--wait`): packets of a SOCK_SEQPACKET, in this order.
//   the head;
//   the descriptors, in packets of one byte with at most kDescriptorsAtOnce each (SCM_RIGHTS, unix(7)): they become kFirstDescriptor and on;
//   the words of its arguments, each with NUL, in packets of at most kWordBytesAtOnce.
#pragma once

#include <cstdint>

namespace sandy {

// Without words: nothing is to be started, and it ends at once. Where the other end is closed without a head, it ends a little later (launcher/orders.cpp).
struct LaunchOrdersHead {
  std::uint32_t descriptors = 0, word_bytes = 0;
};

inline constexpr int kFirstDescriptor = 3;
inline constexpr std::uint32_t kDescriptorsAtOnce = 250;  // the kernel takes 253
inline constexpr std::uint32_t kWordBytesAtOnce = 32'768;

}  // namespace sandy
