#include "host/kept_socket.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <string_view>

#include "host/state_directory.h"

namespace sandy::host {
namespace {

constexpr std::string_view kSuffix = ".socket";
constexpr int kBacklog = 64;

std::vector<std::string> directories(const std::string& state) {
  // One for each state directory: what one of them doesn't know of is no left-over of its own.
  struct stat st{};
  std::vector<std::string> out;
  if (::stat(state.c_str(), &st) == 0) {
    out = kept_socket_directories();
    for (auto& path : out) path += "/" + std::to_string(st.st_dev) + "-" + std::to_string(st.st_ino);
  }
  out.push_back(state + "/sockets");
  return out;
}

// By the directory's descriptor: sun_path has 108 bytes.
sockaddr_un address_in(int directory, const std::string& name) {
  sockaddr_un out{};
  out.sun_family = AF_UNIX;
  const std::string path = "/proc/self/fd/" + std::to_string(directory) + "/" + name;
  path.copy(out.sun_path, sizeof out.sun_path - 1);
  return out;
}

const sockaddr* generic(const sockaddr_un& address) { return reinterpret_cast<const sockaddr*>(&address); }

}  // namespace

std::vector<std::string> kept_socket_directories() {
  std::vector<std::string> out;
  if (const char* const runtime = std::getenv("XDG_RUNTIME_DIR"); runtime != nullptr && runtime[0] == '/') out.push_back(std::string(runtime) + "/sandy");
  const std::string usual = "/run/user/" + std::to_string(::geteuid());
  if (struct stat st{}; ::stat(usual.c_str(), &st) == 0 && st.st_uid == ::geteuid()) out.push_back(usual + "/sandy");
  return out;
}

Result<KeptSocket> listen_kept(const std::string& id, const std::string& state) {
  std::string tried;
  for (const auto& path : directories(state)) {
    auto directory = open_private(path);
    if (!directory) {
      tried += (tried.empty() ? "" : "; ") + directory.error().text();
      continue;
    }
    KeptSocket out;
    const std::string name = id + std::string(kSuffix);
    out.path = path + "/" + name;
    out.listener.reset(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!out.listener) return fail(printable(out.path), errno_text(errno));
    // One that is there is of an earlier sandbox of this id, which holds its directory no more.
    ::unlinkat(directory->get(), name.c_str(), 0);
    const auto address = address_in(directory->get(), name);
    // The directory lets nobody else in; the mode says it once more.
    const mode_t mask = ::umask(0177);
    const bool bound = ::bind(out.listener.get(), generic(address), sizeof address) == 0;
    const int error = errno;
    ::umask(mask);
    if (!bound || ::listen(out.listener.get(), kBacklog) != 0) return fail(printable(out.path), errno_text(bound ? errno : error));
    return out;
  }
  return fail("a place for a socket", tried, "set XDG_RUNTIME_DIR to a directory of yours that nobody else can enter");
}

Result<UniqueFd> connect_kept(const std::string& path) {
  const auto slash = path.rfind('/');
  if (slash == std::string::npos) return fail(printable(path), "is no absolute path");
  const UniqueFd directory(::open(path.substr(0, slash).c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  UniqueFd out(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!directory || !out) return fail(printable(path), errno_text(errno));
  const auto address = address_in(directory.get(), path.substr(slash + 1));
  if (::connect(out.get(), generic(address), sizeof address) != 0) return fail(printable(path), errno_text(errno));
  if (!peer_is_ours(out.get())) return fail(printable(path), "who listens there is of another user");
  return out;
}

bool peer_is_ours(int socket) {
  ucred peer{};
  socklen_t length = sizeof peer;
  return ::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 && peer.uid == ::geteuid();
}

void sweep_kept_sockets(const std::string& state, const std::vector<std::string>& ids) {
  for (const auto& path : directories(state)) {
    const int directory = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct stat st{};
    DIR* stream = directory >= 0 && ::fstat(directory, &st) == 0 && st.st_uid == ::geteuid() ? ::fdopendir(directory) : nullptr;
    if (stream == nullptr) {
      if (directory >= 0) ::close(directory);
      continue;
    }
    while (const dirent* entry = ::readdir(stream)) {
      const std::string_view name = entry->d_name;
      if (!name.ends_with(kSuffix) || std::ranges::find(ids, name.substr(0, name.size() - kSuffix.size())) != ids.end()) continue;
      ::unlinkat(::dirfd(stream), entry->d_name, 0);
    }
    ::closedir(stream);
  }
}

}  // namespace sandy::host
