#include "session/early_start.h"

#include <sys/random.h>

#include <array>

#include "session/planning.h"

namespace sandy::session {

std::string new_id() {
  std::array<unsigned char, 8> bytes;
  while (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {}
  static constexpr char kHex[] = "0123456789abcdef";
  std::string out;
  for (const unsigned char byte : bytes) {
    out += kHex[byte >> 4];
    out += kHex[byte & 15];
  }
  return out;
}

Result<EarlyStart> EarlyStart::begin(boost::asio::any_io_executor executor, const plan::CgroupPlan& plan, const std::string& io_path, std::string id) {
  auto launcher = host::WaitingLauncher::start();
  if (!launcher) return std::unexpected(launcher.error());
  EarlyStart out;
  out.id = std::move(id);
  if (out.id.empty()) out.id = new_id();
  out.cgroup = cgroup::SandboxCgroup::begin(executor, plan, out.id, (*launcher)->pid(), io_path);
  out.launcher = std::move(*launcher);
  return out;
}

std::optional<EarlyStart> EarlyStart::before_plan(boost::asio::any_io_executor executor, const policy::SandboxPolicy& policy) {
  const auto plan = cgroup_plan_here(policy);
  if (!plan || plan->way != plan::CgroupFacts::Way::systemd || plan->limits.io_read || plan->limits.io_write) return {};
  auto out = begin(executor, *plan, {});
  if (!out) return {};  // start() says why
  return std::move(*out);
}

}  // namespace sandy::session
