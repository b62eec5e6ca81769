// Sockets that programs of the host listen on, and descriptors that lead out: rows 19 to 21, 25.
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "attack/attempts.h"
#include "attack/report.h"

namespace sandy::attack {
namespace {

// "@name" is abstract.
socklen_t fill(sockaddr_un& address, const char* text) {
  const size_t length = strlen(text);
  if (length >= sizeof address.sun_path) refused(ENAMETOOLONG);
  address = {};
  address.sun_family = AF_UNIX;
  memcpy(address.sun_path, text, length);
  if (text[0] != '@') return sizeof address;
  address.sun_path[0] = '\0';
  return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + length);
}

template <int Type>
void connect_to(char** addresses) {
  int error = 0;
  for (; *addresses != nullptr; ++addresses) {
    sockaddr_un address;
    const socklen_t length = fill(address, *addresses);
    const int fd = socket(AF_UNIX, Type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, reinterpret_cast<sockaddr*>(&address), length) == 0 && (Type != SOCK_DGRAM || send(fd, "x", 1, 0) == 1)) done(*addresses);
    error = errno;
    if (fd >= 0) close(fd);
  }
  refused(error);
}

// descriptors NAME: any but the three that a command has; a file of that name where one is a directory.
void descriptors(char** arguments) {
  for (int fd = 3; fd < 4096; ++fd) {
    if (fcntl(fd, F_GETFD) < 0) continue;
    const int file = openat(fd, arguments[0], O_RDONLY | O_CLOEXEC);
    char content[256];
    const ssize_t size = file < 0 ? -1 : read(file, content, sizeof content);
    if (size > 0) done(content, static_cast<size_t>(size));
    snprintf(content, sizeof content, "descriptor %d is open", fd);
    done(content);
  }
  refused("none but its three");
}

}  // namespace

const Attempt kSockets[] = {
    {"stream", 1, connect_to<SOCK_STREAM>},
    {"datagram", 1, connect_to<SOCK_DGRAM>},
    {"descriptors", 1, descriptors},
    {nullptr, 0, nullptr},
};

}  // namespace sandy::attack
