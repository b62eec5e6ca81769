#include "host/name_settings.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <utility>

namespace sandy::host {

NameSettings::NameSettings(std::string resolv_conf, std::string hosts) : paths_{std::move(resolv_conf), std::move(hosts)}, seen_{identity(paths_[0]), identity(paths_[1])} {}

NameSettings::Identity NameSettings::identity(const std::string& path) {
  struct stat st{};
  if (::stat(path.c_str(), &st) != 0 || !S_ISREG(st.st_mode)) return {};
  return {st.st_dev, st.st_ino, st.st_size, st.st_mtim.tv_sec, st.st_mtim.tv_nsec};
}

std::optional<std::vector<UniqueFd>> NameSettings::changed() {
  const std::array now{identity(paths_[0]), identity(paths_[1])};
  if (now == seen_) return std::nullopt;
  // (Before they are read: what is written meanwhile is another change.)
  seen_ = now;
  std::vector<UniqueFd> out;
  for (const auto& path : paths_) {
    UniqueFd fd(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
    struct stat st{};
    if (!fd || ::fstat(fd.get(), &st) != 0 || !S_ISREG(st.st_mode)) fd.reset(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    out.push_back(std::move(fd));
  }
  return out;
}

}  // namespace sandy::host
