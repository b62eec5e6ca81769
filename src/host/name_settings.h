// The files by which this machine resolves names.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "base/unique_fd.h"

namespace sandy::host {

// Remembers how they were when it was made, or last asked.
class NameSettings {
 public:
  explicit NameSettings(std::string resolv_conf = "/etc/resolv.conf", std::string hosts = "/etc/hosts");

  // Where one has become another one, by stat(2) of what the name leads to: both, open for reading, resolv.conf(5) first. An empty file stands for one that
  // isn't there, is no regular file or can't be read.
  std::optional<std::vector<UniqueFd>> changed();

 private:
  struct Identity {
    unsigned long long device = 0, inode = 0;
    long long size = -1, seconds = 0, nanoseconds = 0;
    bool operator==(const Identity&) const = default;
  };
  static Identity identity(const std::string& path);

  std::array<std::string, 2> paths_;
  std::array<Identity, 2> seen_;
};

}  // namespace sandy::host
