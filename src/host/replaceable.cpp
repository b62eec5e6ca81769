#include "host/replaceable.h"

#include <grp.h>
#include <limits.h>
#include <pwd.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <string_view>

#include "host/proc_text.h"
#include "plan/host_facts.h"
#include "plan/plan.h"

namespace sandy::host {
namespace {

// In a user namespace without the system's users their files look as if they were nobody's (user_namespaces(7)), as other users' do. Only the
// administrator makes something at the root or in /usr.
bool is_unseen_administrator(uid_t owner, std::string_view path) {
  if (owner != plan::kNobody || !(path.starts_with("/usr/") || path.rfind('/') == 0)) return false;
  const std::string map = read_text("/proc/self/uid_map");
  return !map.empty() && !maps_id(map, plan::kNobody);
}

// Where each user has a group of their own with the same name (Debian's adduser, useradd), files are often writable for it (umask 002).
bool is_group_of_one(gid_t group, uid_t user) {
  const passwd* who = ::getpwuid(user);
  if (who == nullptr) return false;
  const std::string name = who->pw_name;
  const ::group* entry = who->pw_gid == group ? ::getgrgid(group) : nullptr;
  if (entry == nullptr || name != entry->gr_name) return false;
  for (char** member = entry->gr_mem; *member != nullptr; ++member) {
    if (name != *member) return false;
  }
  return true;
}

std::string fault(const std::string& path, const std::vector<uid_t>& owners) {
  struct stat st{};
  if (::stat(path.c_str(), &st) != 0) return printable(path) + ": " + errno_text(errno);
  // Whose the root is, theirs is all that is seen here: in a user namespace with a range of users the system's may look as if it were nobody's.
  if (path != "/" && st.st_uid != 0 && std::ranges::find(owners, st.st_uid) == owners.end() && !is_unseen_administrator(st.st_uid, path)) {
    return printable(path) + " belongs to user " + std::to_string(st.st_uid);
  }
  // In a sticky directory nobody can replace what is another's.
  const bool sticky = S_ISDIR(st.st_mode) && (st.st_mode & S_ISVTX) != 0;
  const bool shared = (st.st_mode & S_IWOTH) != 0 || ((st.st_mode & S_IWGRP) != 0 && !is_group_of_one(st.st_gid, st.st_uid));
  return shared && !sticky ? printable(path) + " can be written to by others" : std::string();
}

std::string fault_up_to_root(std::string path, const std::vector<uid_t>& owners) {
  while (true) {
    if (std::string found = fault(path, owners); !found.empty()) return found;
    if (path == "/") return {};
    path.resize(std::max<std::size_t>(path.rfind('/'), 1));
  }
}

}  // namespace

std::string replaceable_by_others(const std::string& path, const std::vector<uid_t>& owners) {
  if (!path.starts_with('/')) return printable(path) + " is no absolute path";
  if (std::string found = fault_up_to_root(path, owners); !found.empty()) return found;
  std::array<char, PATH_MAX> real;
  if (::realpath(path.c_str(), real.data()) == nullptr) return printable(path) + ": " + errno_text(errno);
  return real.data() == path ? std::string() : fault_up_to_root(real.data(), owners);
}

}  // namespace sandy::host
