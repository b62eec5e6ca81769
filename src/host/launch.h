// Starts a planned sandbox: opens what the plan's slots name, and runs bubblewrap, which runs the agent. As root, with a network, and with control groups, sandy-launch comes first.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/unique_fd.h"
#include "host/etc_view.h"
#include "host/start_mark.h"
#include "host/state_directory.h"
#include "host/waiting_launcher.h"
#include "plan/plan.h"

namespace sandy::host {

struct LaunchedSandbox {
  pid_t pid = -1;         // of bubblewrap, our child
  UniqueFd pidfd;         // readable when it has ended
  UniqueFd agent;         // our end of the agent's socket
  std::unique_ptr<WaitingLauncher> waiting;  // where the plan has control groups: it starts nothing before it is given `orders`
  LaunchOrders orders;
  UniqueFd network;       // where the plan has a network: the sockets that listen there come over it (launcher/network.h)
  UniqueFd messages;      // read end of the launcher's and bubblewrap's stderr
  std::unique_ptr<SandboxDirectory> directory;  // where the plan has one
  UniqueFd etc_lock;
  StartMark mark;         // to be removed when the agent has answered
};

// A state directory of its own: where the plan needs one; always; the one that a kept sandbox of this id has left.
enum class StatePlace { as_planned, always, adopted };

// `id` names the sandbox's state directory; `seccomp` is the compiled filter (struct sock_filter[], seccomp(2)); `waiting` is what is to become bubblewrap, where the
// plan has control groups.
Result<LaunchedSandbox> launch(const plan::SandboxPlan& plan, const std::string& id, std::string_view seccomp, std::unique_ptr<WaitingLauncher> waiting,
                               StatePlace place = StatePlace::as_planned);

}  // namespace sandy::host
