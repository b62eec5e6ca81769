// Ways out of a sandbox without a network, and past a list of what may be reached: rows 1 to 9, 12, 17.
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "attack/attempts.h"
#include "attack/report.h"

namespace sandy::attack {
namespace {

constexpr int kPatienceMs = 5000;

struct Address {
  sockaddr_storage storage{};
  socklen_t length = 0;
};

Address parse(const char* host, const char* port) {
  Address out;
  const auto number = htons(static_cast<uint16_t>(atoi(port)));
  auto* const v4 = reinterpret_cast<sockaddr_in*>(&out.storage);
  auto* const v6 = reinterpret_cast<sockaddr_in6*>(&out.storage);
  if (inet_pton(AF_INET, host, &v4->sin_addr) == 1) {
    v4->sin_family = AF_INET;
    v4->sin_port = number;
    out.length = sizeof *v4;
  } else if (inet_pton(AF_INET6, host, &v6->sin6_addr) == 1) {
    v6->sin6_family = AF_INET6;
    v6->sin6_port = number;
    out.length = sizeof *v6;
  } else {
    refused(EINVAL);
  }
  return out;
}

// Whether `events` come in time.
bool wait_for(int fd, short events, int patience = kPatienceMs) {
  pollfd polled{fd, events, 0};
  int got;
  while ((got = poll(&polled, 1, patience)) < 0 && errno == EINTR) {}
  if (got == 0) errno = ETIMEDOUT;
  return got > 0;
}

int connected(const char* host, const char* port) {
  const Address address = parse(host, port);
  const int fd = socket(address.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return -1;
  if (connect(fd, reinterpret_cast<const sockaddr*>(&address.storage), address.length) == 0) return fd;
  if (errno != EINPROGRESS || !wait_for(fd, POLLOUT)) return close(fd), -1;
  int error = 0;
  socklen_t length = sizeof error;
  getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length);
  if (error == 0) return fd;
  close(fd);
  errno = error;
  return -1;
}

ssize_t exchange(int fd, const char* request, size_t size, char* answer, size_t room, int patience = kPatienceMs) {
  if (send(fd, request, size, MSG_NOSIGNAL) != static_cast<ssize_t>(size) || !wait_for(fd, POLLIN, patience)) return -1;
  return recv(fd, answer, room, 0);
}

// How long to wait for an answer, where none is to be expected: the optional argument behind the others.
int patience(const char* argument) { return argument != nullptr ? atoi(argument) : kPatienceMs; }

// tcp ADDRESS PORT WORD [PATIENCE_MS]: connects, and sends it. What comes of it, whoever listens knows.
void tcp(char** arguments) {
  const int fd = connected(arguments[0], arguments[1]);
  if (fd < 0) refused(errno);
  char answer[16];
  const ssize_t got = exchange(fd, arguments[2], strlen(arguments[2]), answer, sizeof answer, patience(arguments[3]));
  // Whoever is in the way of a connection may take it, and close it.
  got >= 0 || errno != ETIMEDOUT ? refused("closed without an answer") : done("connected");
}

// udp ADDRESS PORT WORD
void udp(char** arguments) {
  const Address address = parse(arguments[0], arguments[1]);
  const int fd = socket(address.storage.ss_family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0 || connect(fd, reinterpret_cast<const sockaddr*>(&address.storage), address.length) != 0) refused(errno);
  if (send(fd, arguments[2], strlen(arguments[2]), 0) < 0) refused(errno);
  // Where nobody listens, the kernel says so; that nobody does is no refusal yet, and whoever listens knows.
  pollfd polled{fd, POLLIN, 0};
  poll(&polled, 1, 100);
  char byte;
  if (recv(fd, &byte, 1, 0) < 0 && errno != EAGAIN) refused(errno);
  done("sent");
}

// dns ADDRESS PORT NAME [PATIENCE_MS]: asks for its address.
void dns(char** arguments) {
  unsigned char query[512] = {0x5a, 0x5a, 1, 0, 0, 1};
  size_t at = 12;
  for (const char* label = arguments[2]; *label != '\0';) {
    const size_t length = strcspn(label, ".");
    if (length == 0 || length > 63 || at + length + 6 > sizeof query) refused(EINVAL);
    query[at++] = static_cast<unsigned char>(length);
    memcpy(query + at, label, length);
    at += length;
    label += length + (label[length] == '.' ? 1 : 0);
  }
  query[at + 2] = query[at + 4] = 1;  // A, IN
  at += 5;
  const Address address = parse(arguments[0], arguments[1]);
  const int fd = socket(address.storage.ss_family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0 || connect(fd, reinterpret_cast<const sockaddr*>(&address.storage), address.length) != 0) refused(errno);
  unsigned char answer[1500];
  const ssize_t size = exchange(fd, reinterpret_cast<char*>(query), at, reinterpret_cast<char*>(answer), sizeof answer, patience(arguments[3]));
  if (size < 0) refused(errno);
  if (size < 12) refused("no answer that is one");
  const int code = answer[3] & 15;
  if (code == 0 && (answer[6] != 0 || answer[7] != 0)) done("it has an address");
  refused(code == 3 ? "NXDOMAIN" : code == 5 ? "REFUSED" : code == 0 ? "no address" : "an error of the name server");
}

// "%00" and the like, since no argument can hold every byte.
size_t decode(const char* text, char* out, size_t room) {
  size_t size = 0;
  for (; *text != '\0' && size < room; ++text) {
    if (text[0] == '%' && text[1] != '\0' && text[2] != '\0') {
      const char digits[] = {text[1], text[2], '\0'};
      out[size++] = static_cast<char>(strtoul(digits, nullptr, 16));
      text += 2;
    } else {
      out[size++] = *text;
    }
  }
  return size;
}

// socks ADDRESS PORT NAME TARGET-PORT: asks a SOCKS5 proxy.
void socks(char** arguments) {
  const int fd = connected(arguments[0], arguments[1]);
  if (fd < 0) refused(errno);
  char answer[512];
  const ssize_t greeted = exchange(fd, "\5\1\0", 3, answer, sizeof answer);
  if (greeted < 0) refused(errno);
  if (greeted < 2 || answer[1] != 0) refused("the proxy wants more");
  char request[512] = {5, 1, 0, 3};
  const size_t length = decode(arguments[2], request + 5, 255);
  request[4] = static_cast<char>(length);
  const auto port = htons(static_cast<uint16_t>(atoi(arguments[3])));
  memcpy(request + 5 + length, &port, 2);
  const ssize_t got = exchange(fd, request, length + 7, answer, sizeof answer);
  if (got < 0) refused(errno);
  if (got == 0) refused("closed without an answer");
  if (got >= 2 && answer[1] == 0) done("the proxy connects");
  char word[32];
  snprintf(word, sizeof word, "SOCKS reply %d", got >= 2 ? static_cast<unsigned char>(answer[1]) : -1);
  refused(word);
}

// The first line's status, or -1.
int status_of(const char* answer, ssize_t size) { return size > 12 && strncmp(answer, "HTTP/1.", 7) == 0 ? atoi(answer + 9) : -1; }

[[noreturn]] void refused_by_http(int status) {
  char word[32];
  snprintf(word, sizeof word, "HTTP %d", status);
  status < 0 ? refused("closed without an answer") : refused(word);
}

// connect ADDRESS PORT AUTHORITY...: asks an HTTP proxy for tunnels.
void tunnel(char** arguments) {
  int status = -1;
  for (char** authority = arguments + 2; *authority != nullptr; ++authority) {
    const int fd = connected(arguments[0], arguments[1]);
    if (fd < 0) refused(errno);
    char name[600], request[1400], answer[512];
    const size_t length = decode(*authority, name, sizeof name - 1);
    name[length] = '\0';
    const int size = snprintf(request, sizeof request, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n", name, name);
    const ssize_t got = exchange(fd, request, static_cast<size_t>(size), answer, sizeof answer - 1);
    status = status_of(answer, got);
    if (status >= 200 && status < 300) done(*authority);
    close(fd);
  }
  refused_by_http(status);
}

// get ADDRESS PORT URL HOST: asks an HTTP proxy for a page, with another host in the header.
void page(char** arguments) {
  const int fd = connected(arguments[0], arguments[1]);
  if (fd < 0) refused(errno);
  char request[1400], answer[512];
  const int size = snprintf(request, sizeof request, "GET %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", arguments[2], arguments[3]);
  const ssize_t got = exchange(fd, request, static_cast<size_t>(size), answer, sizeof answer - 1);
  const int status = status_of(answer, got);
  if (status >= 200 && status < 400) done(arguments[2]);
  refused_by_http(status);
}

}  // namespace

const Attempt kNetwork[] = {
    {"tcp", 3, tcp},
    {"udp", 3, udp},
    {"dns", 3, dns},
    {"socks", 4, socks},
    {"connect", 3, tunnel},
    {"get", 4, page},
    {nullptr, 0, nullptr},
};

}  // namespace sandy::attack
