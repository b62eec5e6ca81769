#include "host/replaceable.h"

#include <grp.h>
#include <pwd.h>
#include <sys/xattr.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <string_view>
#include <utility>

#include "host/path_resolver.h"
#include "host/proc_text.h"
#include "plan/host_facts.h"
#include "plan/plan.h"

namespace sandy::host {
namespace {

// In a user namespace without the system's users their files look as if they were nobody's (user_namespaces(7)), as other users' do. Only the
// administrator makes something at the root, in /usr or in /etc.
bool is_unseen_administrator(uid_t owner, std::string_view path) {
  if (owner != plan::kNobody || !(path.starts_with("/usr/") || path.starts_with("/etc/") || path.rfind('/') == 0)) return false;
  const std::string map = read_text("/proc/self/uid_map");
  return !map.empty() && !maps_id(map, plan::kNobody);
}

// Where each user has a group of their own with the same name (Debian's adduser, useradd), files are often writable for it (umask 002).
bool find_group_of_one(gid_t group, uid_t user) {
  const passwd* who = ::getpwuid(user);
  if (who == nullptr) return false;
  const std::string name = who->pw_name;
  const ::group* entry = who->pw_gid == group ? ::getgrgid(group) : nullptr;
  if (entry == nullptr || name != entry->gr_name) return false;
  for (char** member = entry->gr_mem; *member != nullptr; ++member) {
    if (name != *member) return false;
  }
  // Whose first group it is besides.
  bool alone = true;
  ::setpwent();
  for (const passwd* other = ::getpwent(); other != nullptr && alone; other = ::getpwent()) alone = other->pw_gid != group || other->pw_uid == user;
  ::endpwent();
  return alone;
}

// Asked for each directory above each program, at each start.
bool is_group_of_one(gid_t group, uid_t user) {
  static std::map<std::pair<gid_t, uid_t>, bool> known;
  const auto [at, is_new] = known.try_emplace({group, user});
  if (is_new) at->second = find_group_of_one(group, user);
  return at->second;
}

// With one, the mode's group bits are the most that anybody gets of it (acl(5)), and say nothing of the group. What can't be known counts as one.
bool may_have_access_list(const std::string& path) {
  return ::lgetxattr(path.c_str(), "system.posix_acl_access", nullptr, 0) >= 0 || (errno != ENODATA && errno != ENOTSUP);
}

std::string fault_up_to_root(std::string path, const std::vector<uid_t>& owners) {
  while (true) {
    struct stat st{};
    if (::lstat(path.c_str(), &st) != 0) return printable(path) + ": " + errno_text(errno);
    if (std::string found = changeable_by_others(path, st, owners); !found.empty()) return found;
    if (path == "/") return {};
    path.resize(std::max<std::size_t>(path.rfind('/'), 1));
  }
}

}  // namespace

std::string changeable_by_others(const std::string& path, const struct stat& status, const std::vector<uid_t>& owners) {
  // Whose the root is, theirs is all that is seen here: in a user namespace with a range of users the system's may look as if it were nobody's.
  if (path != "/" && status.st_uid != 0 && std::ranges::find(owners, status.st_uid) == owners.end() && !is_unseen_administrator(status.st_uid, path)) {
    return printable(path) + " belongs to user " + std::to_string(status.st_uid);
  }
  if (S_ISLNK(status.st_mode)) return {};  // its mode means nothing
  // In a sticky directory nobody can replace what is another's.
  const bool sticky = S_ISDIR(status.st_mode) && (status.st_mode & S_ISVTX) != 0;
  const bool shared = (status.st_mode & S_IWOTH) != 0 || ((status.st_mode & S_IWGRP) != 0 && (may_have_access_list(path) || !is_group_of_one(status.st_gid, status.st_uid)));
  return shared && !sticky ? printable(path) + " can be written to by others" : std::string();
}

std::string replaceable_by_others(const std::string& path, const std::vector<uid_t>& owners) {
  if (!path.starts_with('/')) return printable(path) + " is no absolute path";
  const auto resolved = resolve_path(path);
  if (!resolved) return resolved.error().text();
  for (const auto& link : resolved->links) {
    if (std::string found = fault_up_to_root(link.path, owners); !found.empty()) return found;
  }
  for (const std::string& directory : resolved->passed) {
    if (std::string found = fault_up_to_root(directory, owners); !found.empty()) return found;
  }
  return fault_up_to_root(resolved->canonical, owners);
}

}  // namespace sandy::host
