#include "verify/canaries.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <memory>

namespace sandy::verify {
namespace {

Canary<CanaryListener> socket_in(const CanaryPlace& place, const std::string& name, int type) {
  if (!place.directory) return std::unexpected(place.directory.error());
  return CanaryListener::unix_socket(place.file(name), type);
}

// `missing`: what to say where there is no such directory.
void fill(CanaryPlace& place, const char* which, const std::string& parent, const std::string& missing, const std::string& nonce, const std::string& secret) {
  place.directory = parent.empty() ? fail(missing, "") : CanaryDirectory::make(parent, nonce, which, secret);
  place.path = place.directory ? place.directory->path() : "";
  place.stream = socket_in(place, "s", SOCK_STREAM);
  place.datagram = socket_in(place, "d", SOCK_DGRAM);
}

std::string runtime_directory() {
  const char* const named = std::getenv("XDG_RUNTIME_DIR");
  const std::string path = named != nullptr && named[0] == '/' ? named : "/run/user/" + std::to_string(::geteuid());
  return ::access(path.c_str(), W_OK) == 0 ? path : "";
}

// An IPv4 address of this machine other than those of its loopback; "": it has none.
std::string own_address() {
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return {};
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> held(list, ::freeifaddrs);
  for (const ifaddrs* one = list; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr || one->ifa_addr->sa_family != AF_INET || (one->ifa_flags & IFF_LOOPBACK) != 0 || (one->ifa_flags & IFF_UP) == 0) continue;
    std::array<char, INET_ADDRSTRLEN> text{};
    ::inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(one->ifa_addr)->sin_addr, text.data(), text.size());
    return text.data();
  }
  return {};
}

}  // namespace

Canaries::Canaries(const std::string& program, const std::string& nonce, const std::string& home_directory) : secret("secret-" + nonce) {
  ::setenv(kSecretVariable, secret.c_str(), 1);
  fill(home, "h", home_directory, "there is no home directory", nonce, secret);
  fill(tmp, "t", "/tmp", "", nonce, secret);
  fill(runtime, "r", runtime_directory(), "there is no directory $XDG_RUNTIME_DIR", nonce, secret);
  tcp4 = CanaryListener::tcp("127.0.0.1");
  tcp6 = CanaryListener::tcp("::1");
  udp4 = CanaryListener::udp("127.0.0.1");
  allowed = CanaryListener::tcp("127.0.0.1");
  const std::string address = own_address();
  tcp_host = address.empty() ? fail("this machine has no address but its loopback's", "") : CanaryListener::tcp(address);
  udp_host = address.empty() ? fail("this machine has no address but its loopback's", "") : CanaryListener::udp(address);
  abstract_stream = CanaryListener::unix_socket("@sandy-verify-stream-" + nonce, SOCK_STREAM);
  abstract_datagram = CanaryListener::unix_socket("@sandy-verify-datagram-" + nonce, SOCK_DGRAM);
  victim = Victim::start(program, nonce, secret);
  if (tmp.directory) inherited = UniqueFd(::open(tmp.path.c_str(), O_RDONLY | O_DIRECTORY));
}

void Canaries::make_later_sockets() {
  for (CanaryPlace* place : {&home, &tmp, &runtime}) place->later = socket_in(*place, "l", SOCK_STREAM);
}

Result<std::string> Canaries::make_workspace() {
  if (!tmp.directory) return std::unexpected(tmp.directory.error());
  if (auto made = tmp.directory->add_directory("workspace"); !made) return std::unexpected(made.error());
  return tmp.file("workspace");
}

}  // namespace sandy::verify
