#include "host/proc_text.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <charconv>

#include "base/error.h"
#include "base/unique_fd.h"

namespace sandy::host {
namespace {

constexpr std::size_t kMaxList = 64U << 20;  // some 500,000 sockets

bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::string_view next_line(std::string_view& text) {
  const auto end = std::min(text.find('\n'), text.size());
  const auto line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return line;
}

std::string_view next_word(std::string_view& line) {
  const auto start = std::min(line.find_first_not_of(" \t"), line.size());
  line.remove_prefix(start);
  const auto end = std::min(line.find_first_of(" \t"), line.size());
  const auto word = line.substr(0, end);
  line.remove_prefix(end);
  return word;
}

// The fifth field of a line of mountinfo.
std::string_view mount_point(std::string_view line) {
  std::string_view word;
  for (int i = 0; i < 5; ++i) word = next_word(line);
  return word;
}

// Blanks, newlines and backslashes in a mount point are octal: "\\040".
std::string unescaped(std::string_view word) {
  std::string out;
  for (std::size_t i = 0; i < word.size(); ++i) {
    unsigned byte = 0;
    if (word[i] == '\\' && i + 3 < word.size() && std::from_chars(&word[i + 1], &word[i] + 4, byte, 8).ptr == &word[i] + 4) {
      out += static_cast<char>(byte);
      i += 3;
    } else {
      out += word[i];
    }
  }
  return out;
}

constexpr std::array<std::string_view, 20> kKernelFileSystems{
    "binfmt_misc", "bpf",  "cgroup", "cgroup2",    "configfs", "debugfs",    "devpts",    "devtmpfs", "efivarfs", "fusectl",
    "mqueue",      "nfsd", "proc",   "pstore", "resctrl",  "rpc_pipefs", "securityfs", "selinuxfs", "sysfs",   "tracefs"};

bool is_number(std::string_view word, int base) {
  return !word.empty() && std::ranges::all_of(word, [&](unsigned char c) { return base == 16 ? std::isxdigit(c) != 0 : is_digit(static_cast<char>(c)); });
}

// What stands behind the seven numbers of an entry of /proc/net/unix: "ffff8881: 00000002 00000000 00010000 0001 01 12345 /run/x". Of an abstract
// name it begins with "@", of a relative one with anything.
std::optional<std::string_view> socket_name(std::string_view line) {
  if (!next_word(line).ends_with(':')) return std::nullopt;
  for (int i = 0; i < 5; ++i) {
    if (!is_number(next_word(line), 16)) return std::nullopt;
  }
  if (!is_number(next_word(line), 10)) return std::nullopt;
  return line.substr(std::min<std::size_t>(1, line.size()));
}

std::string lower(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

}  // namespace

std::optional<Version> find_version(std::string_view text) {
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (!is_digit(text[at])) continue;
    Version out{};
    std::size_t parts = 0;
    const char* position = text.data() + at;
    const char* const end = text.data() + text.size();
    while (parts < out.size()) {
      const auto [after, error] = std::from_chars(position, end, out[parts]);
      if (error != std::errc()) break;
      ++parts;
      position = after;
      if (position == end || *position != '.' || position + 1 == end || !is_digit(position[1])) break;
      ++position;
    }
    if (parts >= 2) return out;
    while (at + 1 < text.size() && is_digit(text[at + 1])) ++at;
  }
  return std::nullopt;
}

bool maps_id(std::string_view map, std::uint32_t id) {
  while (!map.empty()) {
    std::string_view line = next_line(map);
    std::array<std::uint64_t, 3> numbers{};  // inside, outside, count
    bool valid = true;
    for (auto& number : numbers) {
      const auto word = next_word(line);
      valid = valid && std::from_chars(word.data(), word.data() + word.size(), number).ec == std::errc();
    }
    if (valid && id >= numbers[0] && id - numbers[0] < numbers[2]) return true;
  }
  return false;
}

bool has_capability(std::string_view status, unsigned number) {
  while (!status.empty()) {
    std::string_view line = next_line(status);
    if (next_word(line) != "CapEff:") continue;
    const auto word = next_word(line);
    std::uint64_t set = 0;
    return std::from_chars(word.data(), word.data() + word.size(), set, 16).ec == std::errc() && number < 64 && (set >> number & 1) != 0;
  }
  return false;
}

std::vector<std::string> mounts_below(std::string_view mountinfo, std::string_view directory) {
  std::vector<std::string> out;
  while (!mountinfo.empty()) {
    const auto point = mount_point(next_line(mountinfo));
    if (point.size() <= directory.size() + 1 || !point.starts_with(directory) || point[directory.size()] != '/') continue;
    if (std::ranges::find(out, point) == out.end()) out.emplace_back(point);
  }
  return out;
}

std::vector<std::string> kernel_mounts(std::string_view mountinfo) {
  std::vector<std::string> out;
  while (!mountinfo.empty()) {
    const auto line = next_line(mountinfo);
    const auto point = unescaped(mount_point(line));
    const auto separator = line.find(" - ");  // between it and the mount point are optional fields, as many as there are
    if (point.empty() || separator == std::string_view::npos) continue;
    auto rest = line.substr(separator + 3);
    const auto type = next_word(rest);
    if (std::ranges::find(kKernelFileSystems, type) == kKernelFileSystems.end()) continue;
    if (std::ranges::find(out, point) == out.end()) out.push_back(point);
  }
  return out;
}

bool has_root_mount(std::string_view mountinfo) {
  while (!mountinfo.empty()) {
    if (mount_point(next_line(mountinfo)) == "/") return true;
  }
  return false;
}

std::vector<std::string> socket_names(std::string_view net_unix) {
  std::vector<std::string> out;
  bool is_name = false;  // whether the last entry's name is in `out`, so that it may go on
  while (!net_unix.empty()) {
    const auto line = next_line(net_unix);
    if (const auto name = socket_name(line)) {
      is_name = name->starts_with('/');
      if (is_name) out.emplace_back(*name);
    } else if (is_name) {
      out.back().append("\n").append(line);
    }
  }
  std::ranges::sort(out);
  const auto again = std::ranges::unique(out);
  out.erase(again.begin(), again.end());
  return out;
}

int wsl_generation(std::string_view proc_version) {
  const std::string text = lower(proc_version);
  if (text.find("microsoft") == std::string::npos && text.find("wsl2") == std::string::npos) return 0;
  return text.find("microsoft-standard") != std::string::npos || text.find("wsl2") != std::string::npos ? 2 : 1;
}

bool wsl_interop_enabled(std::string_view binfmt_entry) { return next_line(binfmt_entry) == "enabled"; }

std::string apparmor_profile(std::string_view label) {
  label = label.substr(0, label.find_first_of(std::string_view("\n\0", 2)));
  const auto mode = label.rfind(" (");
  // Without a mode it is "unconfined", or another security module's label.
  if (mode == std::string_view::npos || label.substr(mode) == " (unconfined)") return {};
  return std::string(label.substr(0, mode));
}

std::expected<std::string, std::string> read_list(const char* path) {
  const UniqueFd fd(::open(path, O_RDONLY | O_CLOEXEC));
  if (!fd) return std::unexpected(errno_text(errno));
  std::string out;
  std::array<char, 65'536> buffer;
  while (true) {
    const ssize_t n = ::read(fd.get(), buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return std::unexpected(errno_text(errno));
    if (n == 0) return out;
    out.append(buffer.data(), static_cast<std::size_t>(n));
    if (out.size() > kMaxList) return std::unexpected(std::string("is longer than 64 MiB"));
  }
}

std::string read_text(const char* path) {
  const UniqueFd fd(::open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  std::string out;
  std::array<char, 4096> buffer;
  while (fd && out.size() < 65'536) {
    const ssize_t n = ::read(fd.get(), buffer.data(), buffer.size());
    if (n <= 0) break;
    out.append(buffer.data(), static_cast<std::size_t>(n));
  }
  return out;
}

std::string read_line(const char* path) {
  std::string out = read_text(path);
  out.resize(std::min(out.find('\n'), out.size()));
  return out;
}

}  // namespace sandy::host
