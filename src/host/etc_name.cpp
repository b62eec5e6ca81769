#include "host/etc_name.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <set>
#include <vector>

#include "base/memfd.h"

namespace sandy::host {
namespace {

constexpr int kDirectory = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
constexpr int kMaxDepth = 8;
constexpr std::size_t kMaxKept = 4 << 20;

// FNV-1a. What goes in are names and file times of the host's /etc, which only root can choose.
class Digest {
 public:
  void add(std::string_view bytes) {
    for (const char c : bytes) value_ = (value_ ^ static_cast<std::uint8_t>(c)) * 0x100000001b3ULL;
    value_ = (value_ ^ 0xFF) * 0x100000001b3ULL;
  }
  std::string text() const {
    static constexpr char kHex[] = "0123456789abcdef";
    std::string out;
    for (int shift = 60; shift >= 0; shift -= 4) out += kHex[value_ >> shift & 15];
    return out;
  }

 private:
  std::uint64_t value_ = 0xcbf29ce484222325ULL;
};

// Of a path itself: links are copied as they are. "-" for what isn't there. `directory`: whether it is one.
std::string identity(const char* path, bool& directory) {
  struct stat st{};
  directory = false;
  if (::lstat(path, &st) != 0) return "-";
  directory = S_ISDIR(st.st_mode);
  std::string out;
  for (const auto part : {static_cast<std::int64_t>(st.st_dev), static_cast<std::int64_t>(st.st_ino), static_cast<std::int64_t>(st.st_size),
                          static_cast<std::int64_t>(st.st_mtim.tv_sec), static_cast<std::int64_t>(st.st_mtim.tv_nsec),
                          static_cast<std::int64_t>(st.st_ctim.tv_sec), static_cast<std::int64_t>(st.st_ctim.tv_nsec)}) {
    out += std::to_string(part) + ' ';
  }
  return out;
}

// Of a view, and what a name is kept under: what is asked for.
std::string request_digest(const plan::EtcView& view) {
  Digest digest;
  digest.add(SANDY_VERSION);
  digest.add("modes whatever the umask");
  for (const auto& name : view.copied) digest.add(name);
  digest.add("made");
  for (const auto& [name, text] : view.made) {
    digest.add(name);
    digest.add(text);
  }
  digest.add("links");
  for (const auto& [name, target] : view.links) {
    digest.add(name);
    digest.add(target);
  }
  digest.add("directories");
  for (const auto& name : view.directories) digest.add(name);
  digest.add("files");
  for (const auto& name : view.files) digest.add(name);
  return digest.text();
}

struct Seen {
  std::string path, identity;
};

// The directories below one. Files in them that were changed in place, which package managers don't do, are not looked
// at: it would cost thousands of calls.
void walk(const std::string& path, int depth, std::vector<Seen>& out) {
  bool directory = false;
  auto id = identity(path.c_str(), directory);
  out.push_back({path, std::move(id)});
  if (!directory || depth >= kMaxDepth) return;
  const int fd = ::open(path.c_str(), kDirectory);
  if (fd < 0) return;
  DIR* stream = ::fdopendir(fd);
  if (stream == nullptr) {
    ::close(fd);
    return;
  }
  std::set<std::string> names;
  while (const dirent* entry = ::readdir(stream)) {
    const std::string_view name = entry->d_name;
    if (entry->d_type == DT_DIR && name != "." && name != "..") names.emplace(name);
  }
  ::closedir(stream);
  for (const auto& name : names) walk(path + "/" + name, depth + 1, out);
}

std::string read_kept(const StateDirectory& state, const std::string& file) {
  const UniqueFd fd(::openat(state.fd(), file.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
  struct stat st{};
  std::string text;
  if (!fd || ::fstat(fd.get(), &st) != 0 || !S_ISREG(st.st_mode) || static_cast<std::size_t>(st.st_size) > kMaxKept) return text;
  text.resize(static_cast<std::size_t>(st.st_size));
  std::size_t have = 0;
  while (have < text.size()) {
    const ssize_t n = ::read(fd.get(), text.data() + have, text.size() - have);
    if (n <= 0) return {};
    have += static_cast<std::size_t>(n);
  }
  return text;
}

// The name that was kept, "" if anything changed. The text: NAME NUL, and for each path PATH NUL IDENTITY NUL.
std::string kept_name(std::string_view text) {
  auto word = [&]() -> std::string_view {
    const auto end = text.find('\0');
    if (end == std::string_view::npos) return {};
    const auto out = text.substr(0, end);
    text.remove_prefix(end + 1);
    return out;
  };
  const std::string_view name = word();
  while (!text.empty()) {
    const std::string_view path = word(), was = word();
    bool directory = false;
    // The words of the text end with a NUL, so `path` is a C string.
    if (path.empty() || was.empty() || identity(path.data(), directory) != was) return {};
  }
  return std::string(name);
}

void keep(const StateDirectory& state, const std::string& file, const std::string& name, const std::vector<Seen>& seen) {
  std::string text = name + '\0';
  for (const auto& [path, id] : seen) {
    text += path + '\0';
    text += id + '\0';
  }
  const std::string temporary = file + "." + std::to_string(::getpid());
  const UniqueFd fd(::openat(state.fd(), temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!fd || !write_all(fd.get(), text) || ::renameat(state.fd(), temporary.c_str(), state.fd(), file.c_str()) != 0) {
    ::unlinkat(state.fd(), temporary.c_str(), 0);
  }
}

}  // namespace

std::string etc_name(const StateDirectory& state, const plan::EtcView& view) {
  const std::string request = request_digest(view);
  const std::string file = std::string(kEtcPathsPrefix) + request;
  if (auto name = kept_name(read_kept(state, file)); name.starts_with(kEtcPrefix) && name.find('/') == std::string::npos) return name;
  std::vector<Seen> seen;
  for (const auto& name : view.copied) walk("/etc/" + name, 0, seen);
  Digest digest;
  digest.add(request);
  for (const auto& [path, id] : seen) {
    digest.add(path);
    digest.add(id);
  }
  const std::string name = std::string(kEtcPrefix) + digest.text();
  keep(state, file, name, seen);
  return name;
}

}  // namespace sandy::host
