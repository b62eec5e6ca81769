// Whether this process may make the namespaces that a sandbox needs: found out by trying, in a child that ends at once.
#pragma once

#include <string>

namespace sandy::host {

// Why the attempt failed, in the order in which the kernel would refuse.
enum class UserNamespaceState {
  works,
  none_in_kernel,      // CONFIG_USER_NS is off
  sysctl_max,          // user.max_user_namespaces is 0 (or used up)
  sysctl_clone,        // kernel.unprivileged_userns_clone is 0 (Debian's and Arch's old patch)
  apparmor,            // kernel.apparmor_restrict_unprivileged_userns, and no profile that allows it
  container_seccomp,   // a filter of an outer container refuses unshare(2)
  chroot,              // in a chroot(2) the kernel refuses it
  refused,             // refused, and the cause could not be found
};

struct UserNamespaceProbe {
  UserNamespaceState state = UserNamespaceState::works;
  int error_number = 0;     // of the step that failed
  std::string step;         // "unshare(CLONE_NEWUSER)", "uid_map", "mount(\"/proc\")", …
  bool proc_masked = false; // a fresh /proc can't be mounted: an outer container covers parts of its own
};

UserNamespaceProbe probe_user_namespace();

// The reason and the command that changes it, for people.
std::string describe(const UserNamespaceProbe& probe);
std::string remedy(const UserNamespaceProbe& probe);

}  // namespace sandy::host
