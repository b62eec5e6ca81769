#include "cgroup/support.h"

#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <initializer_list>

#include "base/error.h"
#include "cgroup/cgroup_directory.h"
#include "cgroup/cgroup_text.h"
#include "host/proc_text.h"

namespace sandy::cgroup {
namespace {

using plan::CgroupFacts;

constexpr long kCgroup2 = 0x63677270;  // statfs(2)
constexpr const char* kDelegateFix =
    "as root: mkdir -p /etc/systemd/system/user@.service.d && printf '[Service]\\nDelegate=cpu cpuset io memory pids\\n' > "
    "/etc/systemd/system/user@.service.d/delegate.conf && systemctl daemon-reload, and log in again";

bool is_cgroup2(const char* path) {
  struct statfs st{};
  return ::statfs(path, &st) == 0 && static_cast<long>(st.f_type) == kCgroup2;
}

// (g++ 12 takes strings that are added up for a write out of bounds, its bug 105651.)
std::string joined(std::initializer_list<std::string_view> parts) {
  std::string out;
  for (const auto part : parts) out.append(part);
  return out;
}

struct ManagerSockets {
  std::string own, bus;
};

ManagerSockets manager_sockets() {
  if (::geteuid() == 0) return {"/run/systemd/private", "/run/dbus/system_bus_socket"};
  const char* const runtime = std::getenv("XDG_RUNTIME_DIR");
  const std::string directory = runtime != nullptr && runtime[0] == '/' ? std::string(runtime) : "/run/user/" + std::to_string(::geteuid());
  return {directory + "/systemd/private", directory + "/bus"};
}

bool is_socket(const std::string& path) {
  struct stat st{};
  return ::stat(path.c_str(), &st) == 0 && S_ISSOCK(st.st_mode);
}

// What processes of the caller's service manager can be limited in.
std::string manager_controllers() {
  if (::geteuid() == 0) return host::read_text(joined({kMount, "/cgroup.controllers"}).c_str());
  const std::string id = std::to_string(::geteuid());
  return host::read_text(joined({kMount, "/user.slice/user-", id, ".slice/user@", id, ".service/cgroup.controllers"}).c_str());
}

void note_controllers(CgroupFacts& facts, std::string_view controllers, bool has_swap) {
  facts.memory = has_word(controllers, "memory");
  facts.swap = facts.memory && has_swap;
  facts.cpus = has_word(controllers, "cpu");
  facts.pids = has_word(controllers, "pids");
  facts.io = has_word(controllers, "io");
}

std::string lacking(const CgroupFacts& facts) {
  std::string out;
  const auto add = [&](bool there, const char* name) {
    if (!there) out += (out.empty() ? "" : ", ") + std::string(name);
  };
  add(facts.memory, "memory");
  add(facts.cpus, "cpu");
  add(facts.pids, "pids");
  add(facts.io, "io");
  return out;
}

// Whether the kernel counts swap per cgroup: the file is in every cgroup but the root.
bool counts_swap(const std::string& own) { return ::access(joined({kMount, own, "/memory.swap.max"}).c_str(), F_OK) == 0; }

// A directory that is ours to make others in (systemd.resource-control(5), Delegate=; in a container, the root of its cgroup namespace). What belongs to us and is
// not the one that we are in counts only with systemd's mark (253): it may be the service manager's own.
bool take_delegated(const std::string& path, bool own, CgroupFacts& facts) {
  struct stat st{};
  char mark = 0;
  if (::stat(path.c_str(), &st) != 0 || st.st_uid != ::geteuid()) return false;
  if (!own && (::getxattr(path.c_str(), "user.delegate", &mark, 1) != 1 || mark != '1')) return false;
  for (const char* file : {"", "/cgroup.procs", "/cgroup.subtree_control"}) {
    if (::access(joined({path, file}).c_str(), W_OK) != 0) return false;
  }
  const auto controllers = host::read_text(joined({path, "/cgroup.controllers"}).c_str());
  if (!has_word(controllers, "memory") && !has_word(controllers, "pids")) return false;
  facts.way = CgroupFacts::Way::delegated;
  facts.parent = path;
  note_controllers(facts, controllers, true);
  return true;
}

}  // namespace

std::vector<ManagerAddress> manager_addresses() {
  const auto sockets = manager_sockets();
  std::vector<ManagerAddress> out;
  if (is_socket(sockets.own)) out.push_back({"unix:path=" + sockets.own, false});
  if (is_socket(sockets.bus)) out.push_back({"unix:path=" + sockets.bus, true});
  return out;
}

plan::CgroupFacts find_support() {
  CgroupFacts facts;
  if (!is_cgroup2(kMount)) {
    const bool hybrid = is_cgroup2("/sys/fs/cgroup/unified");
    // (Two assignments: g++ 12 warns of a conditional operator's texts, its bug 105329.)
    if (hybrid) facts.why = "this host has cgroup v1, with v2 beside it (hybrid), where no limit can be set";
    if (!hybrid) facts.why = "this host has no cgroup v2 at /sys/fs/cgroup";
    facts.fix = "boot with systemd.unified_cgroup_hierarchy=1 on the kernel's command line; systemd 248 and newer do so by themselves";
    struct stat st{};
    if (::stat("/run/systemd/system", &st) != 0) {
      facts.fix = "this host was not started by systemd: have what started it mount cgroup2 at /sys/fs/cgroup, and give this user a directory below it that is delegated to it; in a container that is its engine";
    }
    return facts;
  }
  const auto own = unified_path(host::read_text("/proc/self/cgroup")).value_or("/");
  struct stat st{};
  // In a cgroup namespace of a container's nobody is below a service manager's group, whoever's sockets show.
  const bool is_contained = own == "/" || own.starts_with("/..");
  const bool has_manager = !is_contained && ::stat("/run/systemd/system", &st) == 0 && !manager_addresses().empty();
  // libsystemd is loaded when it is needed: a sandbox's start has better to do meanwhile.
  if (has_manager) {
    note_controllers(facts, manager_controllers(), counts_swap(own));
    if (facts.memory || facts.cpus || facts.pids || facts.io) {
      facts.way = CgroupFacts::Way::systemd;
      if (const auto missing = lacking(facts); !missing.empty()) {
        facts.why = "the user's service manager was not given the controllers " + missing;
        facts.fix = kDelegateFix;
      }
      return facts;
    }
    facts.why = "the user's service manager was given no controller";
    facts.fix = kDelegateFix;
  }
  std::string directory = own == "/" ? kMount : joined({kMount, own});
  // Where an earlier sandbox of this directory's has put us.
  if (const std::string host = joined({"/", kHostGroup}); directory.ends_with(host)) directory.resize(directory.size() - host.size());
  if (take_delegated(directory, true, facts) || (own != "/" && take_delegated(std::filesystem::path(directory).parent_path(), false, facts))) {
    facts.why = facts.fix = {};
    if (const auto missing = lacking(facts); !missing.empty()) {
      facts.why = "the directory " + printable(facts.parent) + " was not given the controllers " + missing;
      facts.fix = "give it these too: in a service, Delegate=yes; in a container, an engine that delegates them";
    }
    return facts;
  }
  if (!facts.why.empty()) return facts;
  facts.why = "there is no service manager of the user's (no " + printable(manager_sockets().own) + ", and no bus at " + printable(manager_sockets().bus) + "), and our own cgroup is not ours to write";
  facts.fix = "log in in a way that starts one (ssh; or as root: loginctl enable-linger USER), and install dbus-user-session; in a container, delegate a cgroup";
  if (::geteuid() == 0) facts.fix = "start it under systemd; in a container, delegate a cgroup";
  return facts;
}

}  // namespace sandy::cgroup
