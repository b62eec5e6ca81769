#include "launcher/orders.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>

#include "base/launch_orders.h"
#include "launcher/die.h"

namespace sandy::launcher {
namespace {

[[noreturn]] void die_of_nonsense() {
  errno = EPROTO;
  die("its orders");
}

// Its caller is gone, and may have asked systemd to put it into a scope. A process that has ended is taken for put there all the same, and a scope that nothing was
// ever in stays for ever: so it goes only once it is in one, or none will come any more.
[[noreturn]] void end_in_scope() {
  constexpr int kTurns = 150;
  const timespec pause{.tv_sec = 0, .tv_nsec = 20'000'000};
  for (int turn = 0; turn < kTurns; ++turn) {
    char text[4'096];
    const int fd = open("/proc/self/cgroup", O_RDONLY | O_CLOEXEC);
    const ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof text - 1);
    if (fd >= 0) close(fd);
    text[n > 0 ? n : 0] = '\0';
    const char* const scope = strstr(text, "/sandy-");
    if (scope != nullptr && strstr(scope, ".scope") != nullptr) break;
    nanosleep(&pause, nullptr);
  }
  _exit(1);
}

// One packet, of at least a byte.
size_t receive(int socket, msghdr* message) {
  ssize_t n = 0;
  while ((n = recvmsg(socket, message, 0)) < 0 && errno == EINTR) {}
  if (n < 0) die("its orders");
  if (n == 0) end_in_scope();
  if ((message->msg_flags & MSG_TRUNC) != 0) die_of_nonsense();
  return static_cast<size_t>(n);
}

size_t receive_bytes(int socket, void* bytes, size_t size) {
  iovec part{bytes, size};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  return receive(socket, &message);
}

// The kernel gives each the lowest number that is free: they come to be where they are to be.
int receive_descriptors(int socket, int next) {
  char byte = 0;
  iovec part{&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(kDescriptorsAtOnce * sizeof(int))];
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  receive(socket, &message);
  const cmsghdr* const header = CMSG_FIRSTHDR(&message);
  if ((message.msg_flags & MSG_CTRUNC) != 0) {
    errno = EMFILE;
    die("its descriptors");
  }
  if (header == nullptr || header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) die_of_nonsense();
  const size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
  for (size_t i = 0; i < count; ++i) {
    int fd = -1;
    memcpy(&fd, CMSG_DATA(header) + i * sizeof(int), sizeof fd);
    if (fd != next++) die_of_nonsense();
  }
  return next;
}

}  // namespace

char** take_orders(int socket, int* count) {
  LaunchOrdersHead head;
  if (receive_bytes(socket, &head, sizeof head) != sizeof head) die_of_nonsense();
  if (head.word_bytes == 0) _exit(1);
  const int end = kFirstDescriptor + static_cast<int>(head.descriptors);
  const int high = fcntl(socket, F_DUPFD_CLOEXEC, end);
  if (high < 0) die("its descriptors");
  close(socket);
  for (int next = kFirstDescriptor; next < end;) next = receive_descriptors(high, next);
  char* const words = static_cast<char*>(malloc(head.word_bytes));
  if (words == nullptr) die("its orders");
  for (size_t have = 0; have < head.word_bytes;) have += receive_bytes(high, words + have, head.word_bytes - have);
  if (words[head.word_bytes - 1] != '\0') die_of_nonsense();
  close(high);
  *count = 0;
  for (size_t i = 0; i < head.word_bytes; ++i) *count += words[i] == '\0' ? 1 : 0;
  char** const out = static_cast<char**>(calloc(static_cast<size_t>(*count) + 1, sizeof(char*)));
  if (out == nullptr) die("its orders");
  char* word = words;
  for (int i = 0; i < *count; ++i, word += strlen(word) + 1) out[i] = word;
  return out;
}

}  // namespace sandy::launcher
