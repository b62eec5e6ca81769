#include "agent/files/walk.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace sandy::files {
namespace {

constexpr std::size_t kFlushAt = 65'536;

// The order of paths: a directory is placed by its name and the "/" that follows it in the paths
// below it.
bool path_less(const DirectoryEntry& a, const DirectoryEntry& b) {
  const std::size_t common = std::min(a.name.size(), b.name.size());
  const int order = a.name.compare(0, common, b.name, 0, common);
  if (order != 0) return order < 0;
  const auto at = [&](const DirectoryEntry& entry) -> int {
    if (entry.name.size() > common) return static_cast<unsigned char>(entry.name[common]);
    return entry.type == DT_DIR ? '/' : -1;
  };
  return at(a) < at(b);
}

// "/", whatever it is called (also "/proc/self/root").
bool is_file_system_root(int directory) {
  struct stat here = {};
  struct stat root = {};
  return ::fstat(directory, &here) == 0 && ::stat("/", &root) == 0 && here.st_dev == root.st_dev &&
         here.st_ino == root.st_ino;
}

bool is_pseudo(const std::string& name) {
  return name == "proc" || name == "sys" || name == "dev";
}

}  // namespace

Budget::Budget(std::chrono::milliseconds length)
    : end_(std::chrono::steady_clock::time_point::max()) {
  const auto now = std::chrono::steady_clock::now();
  if (length.count() > 0 && length < std::chrono::hours(24 * 365)) end_ = now + length;
}

bool Budget::spent() const {
  return end_ != std::chrono::steady_clock::time_point::max() &&
         std::chrono::steady_clock::now() > end_;
}

FileResult<void> Walk::enter(const UniqueFd& root, const std::string& path) {
  // By its path, not by its parent's descriptor: depth would cost descriptors. Paths beyond
  // PATH_MAX are counted as errors, as in any program.
  UniqueFd directory(::openat(root.get(), path.empty() ? "." : path.c_str(),
                              O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!directory) {
    // What vanished, or turned into something else, is no hole in the result.
    if (errno != ENOENT && errno != ENOTDIR && errno != ELOOP) ++report_.errors;
    return {};
  }
  const bool prune = path.empty() && is_file_system_root(directory.get());
  auto entries = read_directory(std::move(directory), stop_);
  if (!entries) {
    if (entries.error().code == Code::cancelled) return std::unexpected(entries.error());
    ++report_.errors;
    return {};
  }
  std::erase_if(*entries, [&](const DirectoryEntry& entry) {
    if (entry.type != DT_DIR) return false;
    return (prune && is_pseudo(entry.name)) ||
           std::ranges::find(exclude, entry.name) != exclude.end();
  });
  std::ranges::sort(*entries, [](const auto& a, const auto& b) { return path_less(b, a); });
  levels_.push_back({path.size(), std::move(*entries)});
  return {};
}

FileResult<WalkReport> Walk::run(const UniqueFd& root, const Visit& visit) {
  report_ = {};
  levels_.clear();
  std::string path;
  if (auto ok = enter(root, path); !ok) return std::unexpected(ok.error());
  while (!levels_.empty()) {
    if (stop_.stop_requested()) return file_error(Code::cancelled);
    if (budget_.spent()) {
      report_.over_budget = true;
      break;
    }
    Level& level = levels_.back();
    path.resize(level.path_length);
    if (level.entries.empty()) {
      levels_.pop_back();
      continue;
    }
    const DirectoryEntry entry = std::move(level.entries.back());
    level.entries.pop_back();
    path += entry.name;
    if (entry.type == DT_DIR) {
      path += '/';
      if (auto ok = enter(root, path); !ok) return std::unexpected(ok.error());
    } else if (visit(path, entry.type) == Next::stop) {
      break;
    }
  }
  return report_;
}

void RecordSink::add(std::string_view field) {
  buffer_.append(field);
  buffer_ += '\0';
}

bool RecordSink::flush_if_full() {
  return buffer_.size() < kFlushAt || flush();
}

bool RecordSink::flush() {
  for (std::string_view rest = buffer_; !rest.empty();
       rest.remove_prefix(std::min(rest.size(), kMaxChunk))) {
    if (!sink_(rest.substr(0, kMaxChunk))) return false;
  }
  buffer_.clear();
  return true;
}

}  // namespace sandy::files
