#include "launcher/network.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_addr.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <linux/veth.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <initializer_list>

#include "base/gateway.h"
#include "launcher/die.h"
#include "launcher/netlink.h"
#include "launcher/nftables.h"

namespace sandy::launcher {
namespace {

constexpr int kLoopback = 1, kInterface = 2, kPeer = 3;  // in a new namespace only the first is taken
constexpr int kBacklog = 1'024;

void write_file(const char* path, const char* text) {
  const int fd = open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0 || write(fd, text, strlen(text)) != static_cast<ssize_t>(strlen(text))) die("network: a user namespace");
  close(fd);
}

// One in which this user is itself, so that nothing changes for bubblewrap.
void enter_user_namespace() {
  char uid_map[64], gid_map[64];
  snprintf(uid_map, sizeof uid_map, "%u %u 1\n", geteuid(), geteuid());
  snprintf(gid_map, sizeof gid_map, "%u %u 1\n", getegid(), getegid());
  if (unshare(CLONE_NEWUSER) != 0) die("network: a user namespace");
  write_file("/proc/self/setgroups", "deny");
  write_file("/proc/self/uid_map", uid_map);
  write_file("/proc/self/gid_map", gid_map);
}

ifinfomsg interface(int index, unsigned flags) {
  ifinfomsg out{};
  out.ifi_family = AF_UNSPEC;
  out.ifi_index = index;
  out.ifi_flags = out.ifi_change = flags;
  return out;
}

// An interface that is up and has an address: programs take a machine with only a loopback for one without a network.
void add_interface(NetlinkBatch& batch, bool v6) {
  batch.begin("network: a veth pair", RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL, interface(kInterface, 0));
  batch.text(IFLA_IFNAME, "eth0");
  const auto info = batch.open(IFLA_LINKINFO);
  batch.text(IFLA_INFO_KIND, "veth");
  const auto data = batch.open(IFLA_INFO_DATA), peer = batch.open(VETH_INFO_PEER);
  const ifinfomsg peer_header = interface(kPeer, 0);
  batch.append(&peer_header, sizeof peer_header);
  batch.text(IFLA_IFNAME, "gateway");
  batch.close(peer);
  batch.close(data);
  batch.close(info);
  // No link-local addresses: what is sent from one would be answered nowhere.
  for (const int index : {kInterface, kPeer}) {
    if (!v6) break;
    batch.begin("network: an interface without addresses", RTM_NEWLINK, 0, interface(index, 0));
    const auto families = batch.open(IFLA_AF_SPEC), inet6 = batch.open(AF_INET6);
    const uint8_t mode = IN6_ADDR_GEN_MODE_NONE;
    batch.attribute(IFLA_INET6_ADDR_GEN_MODE, &mode, sizeof mode);
    batch.close(inet6);
    batch.close(families);
  }
  // One end of a pair can't be up before there is the other.
  for (const int index : {kLoopback, kInterface, kPeer}) batch.begin("network: an interface", RTM_NEWLINK, 0, interface(index, IFF_UP));
}

void add_address(NetlinkBatch& batch, int interface, int family, const void* address, std::size_t size) {
  ifaddrmsg header{};
  header.ifa_family = static_cast<uint8_t>(family);
  header.ifa_prefixlen = static_cast<uint8_t>(size * 8);
  header.ifa_index = static_cast<uint32_t>(interface);
  batch.begin("network: an address", RTM_NEWADDR, NLM_F_CREATE | NLM_F_EXCL, header);
  batch.attribute(IFA_LOCAL, address, size);
  batch.attribute(IFA_ADDRESS, address, size);
  // Without the second in which IPv6 looks for others that have the address.
  batch.number(IFA_FLAGS, family == AF_INET6 ? IFA_F_NODAD | IFA_F_PERMANENT : IFA_F_PERMANENT);
}

void add_default_route(NetlinkBatch& batch, int family, const void* source, std::size_t size) {
  rtmsg header{};
  header.rtm_family = static_cast<uint8_t>(family);
  header.rtm_table = RT_TABLE_MAIN;
  header.rtm_protocol = RTPROT_STATIC;
  header.rtm_scope = family == AF_INET ? RT_SCOPE_LINK : RT_SCOPE_UNIVERSE;
  header.rtm_type = RTN_UNICAST;
  batch.begin("network: a route", RTM_NEWROUTE, NLM_F_CREATE, header);
  batch.number(RTA_OIF, kInterface);
  batch.attribute(RTA_PREFSRC, source, size);
}

template <typename Address>
int listener(int type, const Address& address) {
  const int fd = socket(reinterpret_cast<const sockaddr*>(&address)->sa_family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0 || bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 || (type == SOCK_STREAM && listen(fd, kBacklog) != 0)) {
    die("network: a listening socket");
  }
  return fd;
}

int listener(int type, const in_addr& address, uint16_t port) {
  sockaddr_in out{};
  out.sin_family = AF_INET;
  out.sin_port = htons(port);
  out.sin_addr = address;
  return listener(type, out);
}

int listener(int type, const in6_addr& address, uint16_t port) {
  sockaddr_in6 out{};
  out.sin6_family = AF_INET6;
  out.sin6_port = htons(port);
  out.sin6_addr = address;
  return listener(type, out);
}

void send_descriptors(int to, char byte, const int* fds, std::size_t count) {
  iovec bytes{&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * 4)] = {};
  msghdr message{};
  message.msg_iov = &bytes;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = CMSG_SPACE(sizeof(int) * count);
  cmsghdr* const header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int) * count);
  memcpy(CMSG_DATA(header), fds, sizeof(int) * count);
  if (sendmsg(to, &message, MSG_NOSIGNAL) != 1) die("network: sending the listening sockets");
}

// Where IPv6 is switched off (ipv6.disable=1, ipv6.disable_ipv6=1, a sysctl that new namespaces take over, or not built), a sandbox has IPv4 alone.
bool has_ipv6() {
  const int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return false;
  close(fd);
  for (const char* name : {"/proc/sys/net/ipv6/conf/all/disable_ipv6", "/proc/sys/net/ipv6/conf/default/disable_ipv6", "/proc/sys/net/ipv6/conf/lo/disable_ipv6"}) {
    char value = '0';
    const int setting = open(name, O_RDONLY | O_CLOEXEC);
    if (setting >= 0) {
      if (read(setting, &value, 1) != 1) value = '0';
      close(setting);
    }
    if (value != '0') return false;
  }
  return true;
}

void send_inward(int to, bool v6) {
  int fds[2];
  std::size_t count = 0;
  for (const int family : {AF_INET, AF_INET6}) {
    if (family == AF_INET6 && !v6) continue;
    fds[count] = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fds[count++] < 0) die("network: a socket");
  }
  send_descriptors(to, 'c', fds, count);
  while (count > 0) close(fds[--count]);
}

}  // namespace

void enter_network(int to, unsigned inward) {
  Addresses addresses{};
  inet_pton(AF_INET, kGatewayIpv4, &addresses.gateway4);
  inet_pton(AF_INET, "198.18.0.2", &addresses.own4);
  inet_pton(AF_INET6, kGatewayIpv6, &addresses.gateway6);
  inet_pton(AF_INET6, "fd53:616e:6479::2", &addresses.own6);
  enter_user_namespace();
  if (unshare(CLONE_NEWNET) != 0) die("network: a network namespace");
  addresses.v6 = has_ipv6();

  static NetlinkBatch links, rules;  // too large for a small stack
  add_interface(links, addresses.v6);
  add_address(links, kLoopback, AF_INET, &addresses.gateway4, 4);
  add_address(links, kInterface, AF_INET, &addresses.own4, 4);
  add_default_route(links, AF_INET, &addresses.own4, 4);
  if (addresses.v6) {
    add_address(links, kLoopback, AF_INET6, &addresses.gateway6, 16);
    add_address(links, kInterface, AF_INET6, &addresses.own6, 16);
    add_default_route(links, AF_INET6, &addresses.own6, 16);
  }
  links.commit(NETLINK_ROUTE);
  add_rules(rules, addresses);
  rules.commit(NETLINK_NETFILTER);

  int fds[4];
  std::size_t count = 0;
  fds[count++] = listener(SOCK_STREAM, addresses.gateway4, kTcpPort);
  fds[count++] = listener(SOCK_DGRAM, addresses.gateway4, kDnsPort);
  if (addresses.v6) {
    fds[count++] = listener(SOCK_STREAM, addresses.gateway6, kTcpPort);
    fds[count++] = listener(SOCK_DGRAM, addresses.gateway6, kDnsPort);
  }
  for (unsigned i = 0; to >= 0 && i < inward; ++i) send_inward(to, addresses.v6);
  if (to >= 0) send_descriptors(to, 'n', fds, count);
  while (count > 0) close(fds[--count]);
}

}  // namespace sandy::launcher
