#include "host/diagnose.h"

#include <cstdlib>

#include "host/namespaces_probe.h"
#include "host/programs.h"

namespace sandy::host {
namespace {

// Printable lines, the last few.
std::string last_lines(std::string_view messages) {
  std::string out;
  while (!messages.empty() && messages.back() == '\n') messages.remove_suffix(1);
  for (int lines = 0; lines < 3 && !messages.empty(); ++lines) {
    const auto newline = messages.rfind('\n');
    const auto start = newline == std::string_view::npos ? 0 : newline + 1;
    out = printable(messages.substr(start)) + (out.empty() ? "" : "; ") + out;
    messages = messages.substr(0, newline == std::string_view::npos ? 0 : newline);
  }
  return out;
}

struct Row {
  const char* text;  // in the message, as bubblewrap 0.8 to 0.12, sandy-launch or the dynamic linker print it
  const char* why;
  const char* fix;
  bool about_namespaces;
};

constexpr const char* kLookForDenial = "see which security module refused it: sudo dmesg | grep -iE 'apparmor|selinux|avc|denied'";

constexpr Row kRows[] = {
    {"Unknown option", "this bubblewrap is too old for an option that Sandy needs", "install bubblewrap 0.10.0 or newer, or Debian 12's 0.8.0-2+deb12u1", false},
    {"not permitted in setuid mode", "a setuid bubblewrap lacks what a sandbox needs", "sudo chmod u-s on the bubblewrap that `sandy doctor` names", false},
    {"Unexpected capabilities", "bubblewrap was started with capabilities that it doesn't expect",
     "start sandy without capabilities: setpriv --inh-caps=-all --ambient-caps=-all sandy ...; if `getcap` shows some on bwrap: sudo setcap -r on it", false},
    {"can't be id-mapped", "root's sandboxes run as user 65534, and need a file system that can show them the directory as theirs",
     "give the directory to user 65534 (chown 65534:65534), put it on ext4, xfs, btrfs or tmpfs, or run sandy as the directory's owner", false},
    {"sandy-launch: open_tree: Operation not permitted", "this root may not copy mounts: its mount namespace belongs to another user namespace",
     "give it a mount namespace of its own: unshare --mount sandy ...; or run sandy as another user than root", false},
    {"sandy-launch: a mount namespace", "this root may not make a mount namespace, as in a container",
     "run sandy as another user than root: docker run --user 1000:1000, or setpriv --reuid=1000 --regid=1000 --clear-groups sandy ...", true},
    {"becoming an unprivileged user", "root's sandboxes run as user 65534, which this user namespace doesn't have",
     "run sandy as the user outside of this namespace, or give it a range of users: unshare --map-auto --map-root-user, podman unshare", true},
    {"Can't find source path", "the user that bubblewrap runs as may not enter a directory on the way to what it has to show",
     "for a directory of yours: chmod o+x it and those above it; for Sandy's own: set XDG_STATE_HOME to a directory below one that all may enter", false},
    {"Can't create file ", "a file or socket that is hidden from the sandbox went away while it started", "start it again", false},
    {"network: a veth pair", "this kernel has no veth interfaces for user namespaces", "sudo modprobe veth; a kernel built with CONFIG_VETH has it, as distributions' do", false},
    {"nftables that diverts", "this kernel's nftables can't redirect connections", "sudo modprobe nft_nat; a kernel built with CONFIG_NFT_NAT has it, as distributions' do", false},
    {"a nat chain of nftables", "this kernel's nftables can't redirect connections", "sudo modprobe nft_chain_nat; a kernel built with CONFIG_NFT_NAT has it, as distributions' do", false},
    {"of nftables", "this kernel has no nftables for user namespaces", "sudo modprobe nf_tables; a kernel built with CONFIG_NF_TABLES and CONFIG_NF_TABLES_INET has it, as distributions' do", false},
    {"network: nftables", "this kernel has no nftables for user namespaces", "sudo modprobe nf_tables; a kernel built with CONFIG_NF_TABLES and CONFIG_NF_TABLES_INET has it, as distributions' do", false},
    {"network: a user namespace", "sandy-launch may not make a user namespace for the sandbox's network", kLookForDenial, true},
    {"network: a network namespace", "sandy-launch may not make a network namespace", kLookForDenial, true},
    {"sandy-launch: network:", "the sandbox's network can't be made here", "`sandy doctor` tries it alone; a sandbox without a network (network.mode \"none\") doesn't need it", false},
    {"execvp", "the agent can't be executed in the sandbox", "install Sandy again, for this machine's processor; `sandy doctor` looks at its programs", false},
    {"Failed to make / slave", "bubblewrap may not change mount propagation: a security module, as of an outer container, refuses mounts",
     "let the container's AppArmor profile have the rules `userns,`, `mount,` and `pivot_root,` (docker run --security-opt apparmor=NAME); on a host, see what "
     "refused it: sudo dmesg | grep -iE 'apparmor|selinux|avc|denied'",
     true},
    {"RTM_NEWADDR", "bubblewrap's user namespace was left without rights, as AppArmor does to programs without a profile", kAllowNamespaces, true},
    {"setting up uid map", "bubblewrap's user namespace was left without rights, as AppArmor does to programs without a profile", kAllowNamespaces, true},
    {"Can't mount proc", "the kernel refuses a fresh /proc, as in a container that covers parts of its own",
     "start the outer container with its /proc uncovered: docker run --security-opt systempaths=unconfined, podman run --security-opt unmask=/proc/*", true},
    {"reating new namespace failed", "bubblewrap may not make namespaces", kLookForDenial, true},
    {"No permissions to creat", "bubblewrap may not make namespaces", kLookForDenial, true},
};

}  // namespace

std::optional<KnownMessage> known_message(std::string_view messages) {
  for (const Row& row : kRows) {
    if (messages.find(row.text) != std::string_view::npos) return KnownMessage{row.why, row.fix, row.about_namespaces};
  }
  return std::nullopt;
}

Error explain_start_failure(const plan::SandboxPlan& plan, const std::string& messages, const Error& symptom) {
  Error error{"the sandbox could not start", last_lines(messages), ""};
  if (error.why.empty()) error.why = printable(plan.bwrap) + " said nothing; " + symptom.what + (symptom.why.empty() ? "" : " " + symptom.why);
  if (const auto allowed = check_privileges(plan.bwrap); !allowed) {
    error.why += "; " + allowed.error().what + " " + allowed.error().why;
    error.fix = allowed.error().fix;
    return error;
  }
  const auto known = known_message(messages);
  if (!known || known->about_namespaces) {
    const UserNamespaceProbe probe = probe_user_namespace();
    if (probe.state != UserNamespaceState::works || probe.proc_masked) {
      error.why += "; " + describe(probe);
      error.fix = remedy(probe);
      return error;
    }
  }
  if (known) {
    error.why += "; " + known->why;
    error.fix = known->fix;
  } else if (std::getenv("SANDY_BWRAP") != nullptr) {
    error.fix = "this machine's namespaces work, so look at " + printable(plan.bwrap) + ", or unset SANDY_BWRAP; `sandy doctor` tries each part alone";
  } else {
    error.fix = "this machine's namespaces work; `sandy doctor` tries each part alone, and `sandy plan` shows what was tried";
  }
  return error;
}

}  // namespace sandy::host
