// What of a sandbox's start needs no plan: its id, the process that is to become bubblewrap, and the control group that is made around this by systemd meanwhile.
#pragma once

#include <boost/asio.hpp>
#include <memory>
#include <optional>
#include <string>

#include "cgroup/sandbox_cgroup.h"
#include "host/waiting_launcher.h"
#include "policy/policy.h"

namespace sandy::session {

// Names a sandbox: 16 hexadecimal digits.
std::string new_id();

struct EarlyStart {
  std::string id;
  std::unique_ptr<host::WaitingLauncher> launcher;
  std::unique_ptr<cgroup::SandboxCgroup> cgroup;

  // `id`: of a sandbox that has one already.
  static Result<EarlyStart> begin(boost::asio::any_io_executor executor, const plan::CgroupPlan& plan, const std::string& io_path, std::string id = {});

  // For a policy whose plan is still to be made. Nothing: there is no control group to make, or it depends on the plan; Sandbox::start() begins it then.
  static std::optional<EarlyStart> before_plan(boost::asio::any_io_executor executor, const policy::SandboxPolicy& policy);
};

}  // namespace sandy::session
