#include "policy/broad_workspace.h"

#include <array>

#include "base/error.h"
#include "policy/paths.h"

namespace sandy::policy {
namespace {

// Too much as a whole; a directory of the user's own in them is fine.
constexpr std::array<std::string_view, 12> kSharedDirectories{
    "/home", "/root", "/var", "/var/lib", "/var/tmp",  "/var/run",
    "/tmp",  "/opt",  "/srv", "/run",     "/run/user", "/dev/shm"};

// Everything in them decides what the host runs, or is the kernel's.
constexpr std::array<std::string_view, 15> kSystemTrees{
    "/usr",   "/etc",         "/bin",      "/sbin",      "/lib",
    "/lib32", "/lib64",       "/libx32",   "/boot",      "/proc",
    "/sys",   "/run/systemd", "/run/dbus", "/var/spool", "/var/lib/systemd"};

}  // namespace

std::optional<std::string> broad_workspace_reason(std::string_view path, const Caller& caller) {
  const auto contains = [&](std::string_view other) {
    return !other.empty() && is_within(other, path);
  };
  if (path == "/") return "it is the whole file system";
  const std::string home = caller.home.empty() ? "" : normalized(caller.home);
  if (path == home)
    return "it is the home directory, with keys, shell start files and every other project";
  if (contains(home)) return "the home directory is in it";
  if (!caller.state_dir.empty()) {
    const std::string state = normalized(caller.state_dir);
    if (is_within(path, state)) return "it belongs to Sandy's own state";
    if (contains(state)) return "Sandy's own state is in it (" + printable(state) + ")";
  }
  // Below /dev only shared memory is a place for files.
  if (is_within(path, "/dev") && !is_within(path, "/dev/shm")) return "it holds the host's devices";
  for (const std::string_view tree : kSystemTrees) {
    if (is_within(path, tree)) return "the host runs on what is in " + std::string(tree);
    if (contains(tree)) return std::string(tree) + " is in it";
  }
  for (const std::string_view directory : kSharedDirectories) {
    if (path == directory) return "it is shared by everything on the machine";
    if (contains(directory)) return std::string(directory) + " is in it";
  }
  if (path == "/run/user/" + std::to_string(caller.uid))
    return "it holds the sockets of the user's session";
  return std::nullopt;
}

}  // namespace sandy::policy
