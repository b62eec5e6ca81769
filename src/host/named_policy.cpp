#include "host/named_policy.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <string_view>

#include "base/unique_fd.h"
#include "host/facts.h"
#include "host/path_resolver.h"
#include "host/programs.h"
#include "host/replaceable.h"
#include "policy/policy_name.h"

namespace sandy::host {
namespace {

constexpr std::string_view kSuffix = ".json";

// Nothing, or why somebody else could choose what a policy's name stands for.
Result<void> refuse_others(const std::string& what, const std::string& path, const std::string& reason) {
  if (reason.empty()) return {};
  return fail(what, reason + ", who could choose what a policy's name stands for", "chown and chmod go-w " + printable(path) + ", or name a file by its path");
}

// Opened, or nothing where there is none.
Result<std::optional<UniqueFd>> open_directory(const std::string& path) {
  const std::string what = "policies in " + printable(path);
  struct stat st{};
  if (::stat(path.c_str(), &st) != 0) {
    if (errno == ENOENT || errno == ENOTDIR) return std::nullopt;
    return fail(what, errno_text(errno), "make it readable, or remove it");
  }
  const auto resolved = resolve_path(path);
  if (!resolved) return std::unexpected(Error{what, resolved.error().text(), "make it a directory, or remove it"});
  if (resolved->type != plan::FileType::directory) return fail(what, "is no directory", "make it one, or remove it");
  if (auto ok = refuse_others(what, path, replaceable_by_others(path, own_owners())); !ok) return std::unexpected(ok.error());
  auto fd = open_canonical(resolved->canonical);
  if (!fd) return std::unexpected(fd.error());
  UniqueFd readable(::openat(fd->get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!readable) return fail(what, errno_text(errno), "make it readable, or remove it");
  return readable;
}

// A file's text; nothing where there is none.
Result<std::optional<std::string>> read_file_at(int directory, const std::string& name, const std::string& path) {
  const std::string what = "policy " + printable(path), again = "make it a plain file of yours or root's, or remove it";
  const UniqueFd fd(::openat(directory, name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!fd && errno == ENOENT) return std::nullopt;
  if (!fd) return fail(what, errno == ELOOP ? "is a symbolic link" : errno_text(errno), again);
  struct stat st{};
  if (::fstat(fd.get(), &st) != 0) return fail(what, errno_text(errno), again);
  if (!S_ISREG(st.st_mode)) return fail(what, "is no regular file", again);
  if (auto ok = refuse_others(what, path, changeable_by_others(path, st, own_owners())); !ok) return std::unexpected(ok.error());
  std::string text(kMaxNamedPolicy + 1, '\0');
  std::size_t have = 0;
  while (have < text.size()) {
    const ssize_t n = ::read(fd.get(), text.data() + have, text.size() - have);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail(what, errno_text(errno), again);
    if (n == 0) break;
    have += static_cast<std::size_t>(n);
  }
  if (have > kMaxNamedPolicy) return fail(what, "is larger than " + std::to_string(kMaxNamedPolicy / 1024) + " KiB", "name it by its path, which may be of 1 MiB");
  text.resize(have);
  return text;
}

}  // namespace

std::string own_policy_directory() {
  const char* const config = std::getenv("XDG_CONFIG_HOME");
  if (config != nullptr && config[0] == '/') return std::string(config) + "/sandy/policies";
  const std::string home = home_directory();
  return home.starts_with('/') ? home + "/.config/sandy/policies" : std::string();
}

std::vector<std::string> policy_directories() {
  std::vector<std::string> out;
  if (auto own = own_policy_directory(); !own.empty()) out.push_back(std::move(own));
  out.emplace_back("/etc/sandy/policies");
  const std::string& here = own_directory();
  const std::string beside = here + "/policies";
  for (const std::string_view place : {"/bin", "/libexec/sandy"}) {
    // A build has them beside it, and nothing of ours in what would be its prefix.
    if (here.ends_with(place) && ::access(beside.c_str(), F_OK) != 0) {
      out.push_back(here.substr(0, here.size() - place.size()) + "/share/sandy/policies");
      return out;
    }
  }
  out.push_back(beside);
  return out;
}

Result<NamedPolicy> find_policy(const std::string& name, const std::string& cwd) {
  const std::string what = "policy \"" + printable(name) + "\"";
  if (!policy::is_policy_name(name) || name.size() > kMaxPolicyName) {
    return fail(what, "is no name of a policy: those are of a to z, 0 to 9, - and _, at most " + std::to_string(kMaxPolicyName) + " of them", "sandy policy list shows which there are; a file is named by a path: ./NAME.json");
  }
  std::string places;
  for (const std::string& place : policy_directories()) {
    places += (places.empty() ? "" : ", ") + printable(place);
    auto directory = open_directory(place);
    if (!directory) return std::unexpected(directory.error());
    if (!*directory) continue;
    const std::string file = name + std::string(kSuffix), path = place + "/" + file;
    auto text = read_file_at((*directory)->get(), file, path);
    if (!text) return std::unexpected(text.error());
    if (*text) return NamedPolicy{name, path, std::move(**text)};
  }
  struct stat st{};
  const auto is_here = [&](const std::string& file) { return !cwd.empty() && ::lstat((cwd + "/" + file).c_str(), &st) == 0; };
  const std::string file = is_here(name) ? name : name + std::string(kSuffix);
  return fail(what, "there is no " + name + std::string(kSuffix) + " in " + places + (is_here(file) ? ". What has this name in the current directory is not taken for it" : ""),
              "sandy policy list shows which there are; a file is named by a path: ./" + file);
}

Result<std::vector<ListedPolicy>> list_policies() {
  std::map<std::string, ListedPolicy> found;
  for (const std::string& place : policy_directories()) {
    auto directory = open_directory(place);
    if (!directory) return std::unexpected(directory.error());
    if (!*directory) continue;
    const std::unique_ptr<DIR, int (*)(DIR*)> entries(::fdopendir(::dup((*directory)->get())), &::closedir);
    if (!entries) return fail("policies in " + printable(place), errno_text(errno), "make it readable, or remove it");
    while (const dirent* entry = ::readdir(entries.get())) {
      const std::string_view file = entry->d_name;
      if (!file.ends_with(kSuffix)) continue;
      const std::string name(file.substr(0, file.size() - kSuffix.size()));
      if (!policy::is_policy_name(name) || name.size() > kMaxPolicyName || found.contains(name)) continue;
      const std::string path = place + "/" + std::string(file);
      auto text = read_file_at((*directory)->get(), std::string(file), path);
      if (text && !*text) continue;  // it is gone since
      found.emplace(name, ListedPolicy{name, path, text ? Result<std::string>(std::move(**text)) : Result<std::string>(std::unexpected(text.error()))});
    }
  }
  std::vector<ListedPolicy> out;
  for (auto& [name, listed] : found) out.push_back(std::move(listed));
  return out;
}

}  // namespace sandy::host
