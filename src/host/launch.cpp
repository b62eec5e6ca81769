#include "host/launch.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/launch_orders.h"
#include "base/memfd.h"
#include "host/namespaces_probe.h"
#include "host/path_resolver.h"
#include "host/programs.h"
#include "host/spawn.h"
#include "plan/path_text.h"

namespace sandy::host {
namespace {

constexpr int kInwardSockets = 32;  // connections to published ports at a time
constexpr int kAgentSocket = kFirstDescriptor, kArguments = 4, kFirstSlot = 5;  // in bubblewrap's process

Result<UniqueFd> open_slot(const plan::SandboxPlan& plan, const plan::FdSlot& slot, LaunchedSandbox& launched, const StateDirectory* state,
                           std::string_view seccomp) {
  using Kind = plan::FdSlot::Kind;
  switch (slot.kind) {
    case Kind::host_path: return open_canonical(slot.text);
    case Kind::state: return launched.directory->directory(slot.text);
    case Kind::data: return sealed_memfd("sandy-data", slot.text);
    case Kind::seccomp: return sealed_memfd("sandy-seccomp", seccomp);
    case Kind::etc: {
      auto etc = etc_directory(*state, *plan.etc);
      if (!etc) return std::unexpected(etc.error());
      launched.etc_lock = std::move(etc->lock);
      return std::move(etc->path);
    }
    case Kind::agent: {
      auto program = own_program("sandy-agent");
      if (!program) return std::unexpected(program.error());
      UniqueFd fd(::open(program->c_str(), O_PATH | O_CLOEXEC));
      if (!fd) return fail("sandy-agent", errno_text(errno));
      return fd;
    }
  }
  return fail("plan", "a slot of no known kind");
}

// Commands write to what is below a private workspace, and could put a link there that leads the set-up of the sandbox which goes on with it astray, onto the host.
Result<void> check_keepable(const plan::SandboxPlan& plan) {
  const auto is_bound = [&](const plan::MountStep& step) { return step.dest == plan.workspace && step.kind == plan::MountStep::Kind::bind; };
  if (std::ranges::any_of(plan.mounts, is_bound)) return {};
  if (plan.root != plan::RootKind::private_directory) {
    return fail("a sandbox that is kept", "its private workspace would be in memory at " + printable(plan.workspace) + ", and gone with its processes",
                "mount it elsewhere, or leave filesystem.workspace.mount (--mount) out to have /workspace");
  }
  for (const auto& step : plan.mounts) {
    if (!plan::is_below(step.dest, plan.workspace)) continue;
    return fail("a sandbox that is kept", "its private workspace " + printable(plan.workspace) + " would have " + printable(step.dest) + " of the policy's in it",
                "mount the workspace elsewhere (filesystem.workspace.mount, --mount), or work on a directory in place (--workspace)");
  }
  return {};
}

}  // namespace

Result<LaunchedSandbox> launch(const plan::SandboxPlan& plan, const std::string& id, std::string_view seccomp, std::unique_ptr<WaitingLauncher> waiting, StatePlace place) {
  LaunchedSandbox launched;
  // Without root, a network and control groups there is nothing to prepare, and bubblewrap is started at once.
  const bool prepared = plan.host_ids || plan.network || waiting;
  std::string program = plan.bwrap;
  std::vector<std::string> argv{plan.bwrap};
  if (prepared && !waiting) {
    auto launcher = own_program("sandy-launch");
    if (!launcher) return std::unexpected(launcher.error());
    program = std::move(*launcher);
  }
  if (prepared) argv = {"sandy-launch"};
  if (plan.host_ids) argv.insert(argv.end(), {"--user", std::to_string(plan.host_ids->first) + ":" + std::to_string(plan.host_ids->second)});
  if (auto allowed = check_root(); !allowed) return std::unexpected(allowed.error());
  auto state = StateDirectory::open();
  if (!state) return std::unexpected(state.error());
  StartMark::sweep(*state);
  auto mark = StartMark::make(*state, id);
  if (!mark) return std::unexpected(mark.error());
  launched.mark = std::move(*mark);
  if (place != StatePlace::as_planned) {
    if (auto checked = check_keepable(plan); !checked) return std::unexpected(checked.error());
  }
  if (plan.root == plan::RootKind::private_directory || place != StatePlace::as_planned) {
    state->sweep();
    auto directory = place == StatePlace::adopted ? SandboxDirectory::adopt(*state, id, plan.host_ids) : SandboxDirectory::make(*state, id, plan.host_ids);
    if (!directory) return std::unexpected(directory.error());
    launched.directory = std::make_unique<SandboxDirectory>(std::move(*directory));
    // The workspace is what is gone on with; the rest is made anew.
    if (place == StatePlace::adopted) {
      if (auto left = launched.directory->leave_only(plan::kRootDirectory, plan.workspace); !left) return std::unexpected(left.error());
    }
  }

  const int network_number = kFirstSlot + static_cast<int>(plan.slots.size()), first_free = network_number + 1;
  std::vector<UniqueFd> slots;
  std::vector<int> numbers;
  auto keep = [&](UniqueFd fd) -> Result<UniqueFd> {
    // Out of the way of the numbers that the child gets them under.
    UniqueFd high(::fcntl(fd.get(), F_DUPFD_CLOEXEC, first_free));
    if (!high) return fail("descriptors", errno_text(errno), "raise the limit on open files (ulimit -n)");
    return high;
  };
  for (std::size_t i = 0; i < plan.slots.size(); ++i) {
    auto fd = open_slot(plan, plan.slots[i], launched, &*state, seccomp);
    if (!fd) return std::unexpected(fd.error());
    auto high = keep(std::move(*fd));
    if (!high) return std::unexpected(high.error());
    slots.push_back(std::move(*high));
    numbers.push_back(kFirstSlot + static_cast<int>(i));
    using Kind = plan::FdSlot::Kind;
    const Kind kind = plan.slots[i].kind;
    if (plan.host_ids && (kind == Kind::host_path || kind == Kind::state || kind == Kind::etc || kind == Kind::agent)) {
      argv.push_back(plan.slots[i].idmap ? "--idmap" : "--stage");
      argv.push_back(std::to_string(numbers.back()));
    }
  }

  std::string arguments;
  for (const auto& word : plan::bwrap_options(plan, numbers)) arguments += word + '\0';
  auto arguments_fd = sealed_memfd("sandy-bwrap-arguments", arguments);
  if (!arguments_fd) return std::unexpected(arguments_fd.error());
  auto arguments_high = keep(std::move(*arguments_fd));
  if (!arguments_high) return std::unexpected(arguments_high.error());

  int sockets[2], pipe[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) != 0) return fail("socketpair", errno_text(errno));
  launched.agent.reset(sockets[0]);
  auto agent_high = keep(UniqueFd(sockets[1]));
  if (!agent_high) return std::unexpected(agent_high.error());

  UniqueFd network_high;
  if (plan.network) {
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) != 0) return fail("socketpair", errno_text(errno));
    launched.network.reset(sockets[0]);
    auto high = keep(UniqueFd(sockets[1]));
    if (!high) return std::unexpected(high.error());
    network_high = std::move(*high);
    argv.insert(argv.end(), {"--network", std::to_string(network_number)});
    if (!plan.network->publish.empty()) argv.insert(argv.end(), {"--inward", std::to_string(kInwardSockets)});
  }
  if (prepared) argv.insert(argv.end(), {"--", plan.bwrap});
  argv.insert(argv.end(), {"--args", std::to_string(kArguments), "--", plan::kAgentPath});
  // In the order of their numbers.
  std::vector<UniqueFd> descriptors;
  descriptors.push_back(std::move(*agent_high));
  descriptors.push_back(std::move(*arguments_high));
  for (auto& slot : slots) descriptors.push_back(std::move(slot));
  if (network_high) descriptors.push_back(std::move(network_high));
  if (waiting) {
    argv.erase(argv.begin());
    launched.orders = {std::move(descriptors), std::move(argv)};
    launched.messages = waiting->take_messages();
    auto child = waiting->take();
    launched.pid = child.pid;
    launched.pidfd = std::move(child.pidfd);
    launched.waiting = std::move(waiting);
    return launched;
  }
  if (::pipe2(pipe, O_CLOEXEC) != 0) return fail("pipe", errno_text(errno));
  launched.messages.reset(pipe[0]);
  auto messages_high = keep(UniqueFd(pipe[1]));
  if (!messages_high) return std::unexpected(messages_high.error());
  Spawn actions;
  actions.open_null(0);
  actions.open_null(1);
  actions.dup(messages_high->get(), 2);
  for (std::size_t i = 0; i < descriptors.size(); ++i) actions.dup(descriptors[i].get(), kFirstDescriptor + static_cast<int>(i));
  auto child = actions.run(program, argv);
  if (!child) return std::unexpected(child.error());
  launched.pid = child->pid;
  launched.pidfd = std::move(child->pidfd);
  return launched;
}

}  // namespace sandy::host
