#include "host/unix_sockets.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <optional>

#include "host/path_resolver.h"
#include "host/proc_text.h"
#include "plan/path_text.h"

namespace sandy::host {
namespace {

constexpr char kList[] = "/proc/net/unix";

}  // namespace

std::vector<std::string> located_sockets(const std::vector<std::string>& names, const std::vector<std::string>& trees) {
  std::vector<std::string> out;
  std::map<std::string, std::optional<std::string>, std::less<>> directories;  // as written, to canonical, where they are of interest
  for (const auto& name : names) {
    const auto slash = name.rfind('/');
    auto directory = directories.find(std::string_view(name).substr(0, slash));
    if (directory == directories.end()) {
      directory = directories.emplace(name.substr(0, slash), std::nullopt).first;
      const auto resolved = resolve_path(directory->first);
      const auto holds = [&](const std::string& tree) { return plan::is_at_or_below(resolved->canonical, tree); };
      if (resolved && resolved->type == plan::FileType::directory && std::ranges::any_of(trees, holds)) {
        directory->second = resolved->canonical == "/" ? "" : resolved->canonical;
      }
    }
    if (!directory->second) continue;
    const std::string path = *directory->second + name.substr(slash);
    struct stat st{};
    if (::lstat(path.c_str(), &st) != 0) continue;
    if (S_ISSOCK(st.st_mode)) {
      out.push_back(path);
    } else if (S_ISLNK(st.st_mode)) {
      // Renamed, with a link left in its place.
      const auto resolved = resolve_path(path);
      if (resolved && resolved->type == plan::FileType::socket) out.push_back(resolved->canonical);
    }
  }
  std::ranges::sort(out);
  const auto again = std::ranges::unique(out);
  out.erase(again.begin(), again.end());
  return out;
}

void remove_placeholders(const std::vector<plan::HiddenSocket>& sockets) {
  for (const auto& socket : sockets) {
    if (!socket.in_writable) continue;
    struct stat st{};
    if (::lstat(socket.path.c_str(), &st) != 0 || !S_ISREG(st.st_mode)) continue;
    // Commands run by now, and may put links on the way.
    const auto directory = open_canonical(plan::parent_of(socket.path));
    const std::string name = socket.path.substr(socket.path.rfind('/') + 1);
    if (!directory || ::fstatat(directory->get(), name.c_str(), &st, AT_SYMLINK_NOFOLLOW) != 0) continue;
    if (S_ISREG(st.st_mode) && st.st_size == 0) ::unlinkat(directory->get(), name.c_str(), 0);
  }
}

Result<std::vector<std::string>> bound_sockets(const std::vector<std::string>& trees) {
  const auto list = read_list(kList);
  if (!list) return fail(std::string("the host's sockets: ") + kList, list.error(), "a sandbox hides those in what it shows, so it needs the list: mount /proc");
  return located_sockets(socket_names(*list), trees);
}

}  // namespace sandy::host
