#include "host/etc_view.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <ctime>
#include <string_view>

#include "base/memfd.h"
#include "host/etc_name.h"
#include "host/remove_tree.h"

namespace sandy::host {
namespace {

constexpr int kDirectory = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
constexpr off_t kMaxFile = 4 << 20;
constexpr int kMaxDepth = 8;
constexpr std::time_t kUnused = 24 * 3600;

class Builder {
 public:
  explicit Builder(int target) : target_(target) {}

  // A file to mount on; one that was copied does as well.
  bool make_place(const std::string& name) { return ::faccessat(target_, name.c_str(), F_OK, AT_SYMLINK_NOFOLLOW) == 0 || write_file(name, ""); }

  bool write_file(const std::string& name, std::string_view content) {
    parents(name);
    const UniqueFd fd(::openat(target_, name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
    return fd && write_all(fd.get(), content).has_value();
  }

  // One that was copied is the same.
  bool make_link(const std::string& name, const std::string& target) {
    parents(name);
    return ::symlinkat(target.c_str(), target_, name.c_str()) == 0 || errno == EEXIST;
  }

  bool make_directory(const std::string& name) {
    parents(name);
    return ::mkdirat(target_, name.c_str(), 0755) == 0 || errno == EEXIST;
  }

  // `name` of the host's /etc, whatever it is; what can't be read is left out.
  void copy(const std::string& name, int depth = 0) {
    const std::string source = "/etc/" + name;
    struct stat st{};
    if (depth > kMaxDepth || ::lstat(source.c_str(), &st) != 0) return;
    if (S_ISLNK(st.st_mode)) {
      std::array<char, PATH_MAX> text;
      const ssize_t n = ::readlink(source.c_str(), text.data(), text.size() - 1);
      if (n <= 0) return;
      make_link(name, std::string(text.data(), static_cast<std::size_t>(n)));
    } else if (S_ISREG(st.st_mode)) {
      copy_file(source, name, st.st_size);
    } else if (S_ISDIR(st.st_mode)) {
      DIR* stream = ::opendir(source.c_str());
      if (stream == nullptr) return;
      make_directory(name);
      while (const dirent* entry = ::readdir(stream)) {
        const std::string_view child = entry->d_name;
        if (child != "." && child != "..") copy(name + "/" + std::string(child), depth + 1);
      }
      ::closedir(stream);
    }
  }

 private:
  void parents(const std::string& name) {
    for (std::size_t slash = name.find('/'); slash != std::string::npos; slash = name.find('/', slash + 1)) {
      (void)::mkdirat(target_, name.substr(0, slash).c_str(), 0755);
    }
  }

  void copy_file(const std::string& source, const std::string& name, off_t size) {
    if (size > kMaxFile) return;
    const UniqueFd from(::open(source.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
    if (!from) return;
    std::string content;
    std::array<char, 65'536> buffer;
    ssize_t n = 0;
    while ((n = ::read(from.get(), buffer.data(), buffer.size())) > 0) content.append(buffer.data(), static_cast<std::size_t>(n));
    if (n == 0) write_file(name, content);
  }

  int target_;
};

Result<EtcDirectory> open_ready(const StateDirectory& state, const std::string& name) {
  EtcDirectory out;
  out.lock.reset(::openat(state.fd(), name.c_str(), kDirectory));
  if (!out.lock) return fail("/etc view", errno_text(errno));
  if (::flock(out.lock.get(), LOCK_SH | LOCK_NB) != 0) return fail("/etc view", "is being removed");
  out.path.reset(::openat(state.fd(), name.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat st{};
  // Removed between the two calls: it has no name any more.
  if (!out.path || ::fstat(out.path.get(), &st) != 0 || st.st_nlink == 0) return fail("/etc view", "was removed");
  if (::time(nullptr) - st.st_mtime > 3600) ::utimensat(state.fd(), name.c_str(), nullptr, 0);
  return out;
}

}  // namespace

Result<EtcDirectory> etc_directory(const StateDirectory& state, const plan::EtcView& view) {
  // The sandbox's user reads it, who may be another one: its modes are ours to choose, not the caller's umask's.
  struct Umask {
    mode_t saved = ::umask(022);
    ~Umask() { ::umask(saved); }
  } const modes;
  const std::string name = etc_name(state, view);
  if (auto ready = open_ready(state, name)) return ready;
  const std::string making = "making-" + name + "-" + std::to_string(::getpid());
  (void)remove_tree(state.fd(), making);
  if (::mkdirat(state.fd(), making.c_str(), 0755) != 0) return fail("/etc view in " + printable(state.path()), errno_text(errno));
  {
    const UniqueFd target(::openat(state.fd(), making.c_str(), kDirectory));
    Builder builder(target.get());
    for (const auto& entry : view.copied) builder.copy(entry);
    for (const auto& directory : view.directories) builder.make_directory(directory);
    bool made = target.get() >= 0;
    for (const auto& file : view.files) made = builder.make_place(file) && made;
    for (const auto& [link, text] : view.links) made = builder.make_link(link, text) && made;
    for (const auto& [file, text] : view.made) made = builder.write_file(file, text) && made;
    if (!made) {
      const int error = errno;
      (void)remove_tree(state.fd(), making);
      return fail("/etc view in " + printable(state.path()), errno_text(error));
    }
    ::fchmod(target.get(), 0755);
  }
  // Whoever is first wins; the other one's is the same.
  if (::renameat(state.fd(), making.c_str(), state.fd(), name.c_str()) != 0) (void)remove_tree(state.fd(), making);
  // Only with a new one does their number grow.
  sweep_etc_directories(state);
  return open_ready(state, name);
}

void sweep_etc_directories(const StateDirectory& state) {
  DIR* stream = ::fdopendir(::openat(state.fd(), ".", kDirectory));
  if (stream == nullptr) return;
  std::vector<std::string> names;
  while (const dirent* entry = ::readdir(stream)) {
    const std::string_view name = entry->d_name;
    if (name.starts_with(kEtcPrefix) || name.starts_with("making-") || name.starts_with(kEtcPathsPrefix)) names.emplace_back(name);
  }
  ::closedir(stream);
  for (const auto& name : names) {
    struct stat st{};
    if (name.starts_with(kEtcPathsPrefix)) {
      // Written anew by whoever needs it.
      if (::fstatat(state.fd(), name.c_str(), &st, AT_SYMLINK_NOFOLLOW) == 0 && ::time(nullptr) - st.st_mtime > kUnused) {
        ::unlinkat(state.fd(), name.c_str(), 0);
      }
      continue;
    }
    const UniqueFd fd(::openat(state.fd(), name.c_str(), kDirectory));
    if (!fd || ::fstat(fd.get(), &st) != 0 || ::time(nullptr) - st.st_mtime < kUnused) continue;
    if (::flock(fd.get(), LOCK_EX | LOCK_NB) == 0) (void)remove_tree(state.fd(), name);
  }
}

}  // namespace sandy::host
