// Whether a sandbox's namespaces can be made here: found out by trying, in a child that ends at once.
#pragma once

#include <string>

#include "base/error.h"

namespace sandy::host {

// How programs get user namespaces where AppArmor gives them only to those with a profile.
inline constexpr const char* kAllowNamespaces =
    "install the distribution's package sandy, which has AppArmor profiles; or, for sandboxes without a network, allow user namespaces to bubblewrap: sudo apt install "
    "apparmor-profiles && sudo cp /usr/share/apparmor/extra-profiles/bwrap-userns-restrict /etc/apparmor.d/ && sudo apparmor_parser -r /etc/apparmor.d/bwrap-userns-restrict";

// Why the attempt failed, in the order in which the kernel would refuse.
enum class UserNamespaceState {
  works,
  unmapped_user,       // root of a user namespace without the user that root's sandboxes run as
  no_proc,             // no /proc is mounted
  none_in_kernel,      // CONFIG_USER_NS or another kind of namespace is off
  sysctl_max,          // one of user.max_*_namespaces is 0 (or used up)
  sysctl_clone,        // kernel.unprivileged_userns_clone is 0 (Debian's and Arch's old patch)
  apparmor,            // kernel.apparmor_restrict_unprivileged_userns, and no profile that allows it
  apparmor_profile,    // this process is confined by a profile, as in a container, that refuses it
  container_seccomp,   // a filter of an outer container refuses it
  chroot,              // in a chroot(2) the kernel refuses it
  refused,             // refused, and the cause could not be found
};

struct UserNamespaceProbe {
  UserNamespaceState state = UserNamespaceState::works;
  int error_number = 0;     // of the step that failed
  std::string step;         // "making a user namespace", "mounting a fresh /proc", …; "" if none failed
  std::string subject;      // what the state is about: a sysctl's name, an AppArmor profile, a kind of namespace
  bool proc_masked = false; // a fresh /proc can't be mounted, because parts of the one here are covered
  std::string covered;      // which, e.g. "/proc/sys, /proc/kcore"; "" where none is seen
};

// Tries as the user that a sandbox would be started as: root's are started as plan::kNobody.
UserNamespaceProbe probe_user_namespace();

// Whether root's sandboxes can be started as plan::kNobody: that user exists in this user namespace, and root has what it needs to show it root's
// directories (CAP_SYS_ADMIN, for mounts). Success for everybody else than root.
Result<void> check_root();

// The reason, and the command that changes it, for people. Neither is empty, but for the remedy of what works.
std::string describe(const UserNamespaceProbe& probe);
std::string remedy(const UserNamespaceProbe& probe);

}  // namespace sandy::host
