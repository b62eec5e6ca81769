#include "host/doctor.h"

#include <sys/utsname.h>

#include "host/diagnose.h"
#include "host/machine_capabilities.h"
#include "host/programs.h"
#include "host/run_program.h"

namespace sandy::host {
namespace {

using namespace std::chrono_literals;

using State = CapabilityState;

Capability sandbox_start(const StartFindings& start) {
  Capability out{.name = "sandbox start", .state = State::ok, .detail = start.detail, .needs = "all that Sandy does", .fix = {}};
  if (!start.error) return out;
  out.state = State::missing;
  out.detail = start.error->what + (start.error->why.empty() ? "" : ": " + start.error->why);
  out.fix = start.error->fix;
  return out;
}

Capability network_allowlist() {
  Capability out{.name = "network allowlist",
                 .state = State::ok,
                 .detail = "a network namespace with nftables and a veth pair can be made, without rights on the host's network",
                 .needs = "network.mode \"allowlist\", --allow-domain, allow_domains",
                 .fix = {}};
  const auto launcher = own_program("sandy-launch");
  if (!launcher || !own_program("sandy-proxy")) {
    out.state = State::missing;
    out.detail = "sandy-launch or sandy-proxy is not there";
    out.fix = "install Sandy again, all of its programs from one version in one place";
    return out;
  }
  const auto tried = run_program({*launcher, "--try-network"}, 5s);
  if (tried && !tried->timed_out && tried->status == 0) return out;
  out.state = State::missing;
  out.detail = tried ? tried->err.substr(0, tried->err.find('\n')) : tried.error().why;
  const auto known = known_message(out.detail);
  if (known) out.detail += ": " + known->why;
  out.fix = known ? known->fix : "see the other lines that are not ok; sandboxes without a network don't need it";
  return out;
}

}  // namespace

std::vector<Capability> reconcile(std::vector<Capability> found, bool started) {
  for (Capability& capability : found) {
    if (started && capability.proven_by_start && capability.state == State::missing) {
      capability.state = State::ok;
      capability.detail = "bubblewrap can, as the start shows; this process alone can't: " + capability.detail;
      capability.fix.clear();
    }
    if (capability.state != State::ok && capability.fix.empty()) capability.fix = "see the other lines that are not ok";
    capability.detail = printable(capability.detail);
    capability.fix = printable(capability.fix);
  }
  return found;
}

std::vector<Capability> examine_machine(const BubblewrapExamination& bubblewrap, const StartFindings& start) {
  std::vector<Capability> out{sandbox_start(start)};
  out.insert(out.end(), bubblewrap.capabilities.begin(), bubblewrap.capabilities.end());
  for (auto& capability : namespace_capabilities()) out.push_back(std::move(capability));
  out.push_back(seccomp_filters());
  out.push_back(state_directory());
  out.push_back(own_programs());
  out.push_back(sandbox_user());
  utsname names{};
  ::uname(&names);
  out.push_back(kernel_release(names.release));
  if (start.lost_path) {
    out.push_back(lost_path(*start.lost_path));
  } else {
    Capability path = lost_path({});
    path.state = State::limited;
    path.detail = "not known: no sandbox could be planned";
    out.push_back(path);
  }
  out.push_back(wsl(wsl_facts()));
  out.push_back(landlock());
  out.push_back(cgroup_limits(start.cgroup, start.lost_cgroup, start.degraded));
  out.push_back(network_allowlist());
  return reconcile(std::move(out), !start.error);
}

}  // namespace sandy::host
