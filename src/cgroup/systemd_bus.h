// The caller's service manager, over D-Bus (org.freedesktop.systemd1(5)): scopes, which are control groups of processes that somebody else started. Everything is
// on one thread, or one strand.
//
// Its own socket is asked first, as systemctl(1) does: no daemon is between, which would pass each message on, and nobody has to be greeted. It has no promise of
// staying where it is; where it isn't, there is the bus.
#pragma once

#include <sys/types.h>

#include <boost/asio.hpp>
#include <chrono>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "base/error.h"
#include "cgroup/support.h"
#include "cgroup/systemd_library.h"
#include "policy/policy.h"

namespace sandy::cgroup {

namespace asio = boost::asio;

// Resource properties of a unit (systemd.resource-control(5)): MemoryMax, MemorySwapMax, CPUQuotaPerSecUSec, TasksMax, IOReadBandwidthMax, IOWriteBandwidthMax. What
// isn't set is left as it is.
struct ScopeLimits : policy::GroupLimits {
  std::string io_path;  // a file on the disk that those of I/O are for
};

// A transient scope, delegated to us, with one process. Its processes go on when one is killed for want of memory (OOMPolicy=continue), where this systemd knows that.
struct ScopeRequest {
  std::string name, description;
  pid_t pid = -1;
  ScopeLimits limits;
};

class SystemdBus : public std::enable_shared_from_this<SystemdBus> {
 public:
  static constexpr std::chrono::seconds kLimit{2};  // for all of what is waited for

  // Connects, without waiting for it.
  static Result<std::shared_ptr<SystemdBus>> open(asio::any_io_executor executor, const ManagerAddress& address);
  // One for all of this process, which is opened again where it has ended. Its user calls shutdown() before `executor` goes.
  static Result<std::shared_ptr<SystemdBus>> shared(asio::any_io_executor executor);
  static void shutdown();
  ~SystemdBus();
  SystemdBus(const SystemdBus&) = delete;
  SystemdBus& operator=(const SystemdBus&) = delete;

  // One that is asked for.
  struct Scope;
  // Asks for it, without waiting. It may be given up: what is heard of it then is for nobody.
  Result<std::shared_ptr<Scope>> ask_for_scope(ScopeRequest request);
  // Returns when systemd says that the job for it is done.
  asio::awaitable<Result<void>> wait_for_scope(std::shared_ptr<Scope> scope);
  // Other limits for a scope that runs.
  asio::awaitable<Result<void>> set_limits(std::string name, ScopeLimits limits);

  // Reads and writes what can be now: for whoever has long work before the loop runs again.
  void advance();
  bool alive() const { return bus_ != nullptr; }
  // Ends what waits; it is not usable any more.
  void close();

 private:
  struct Call;
  explicit SystemdBus(asio::any_io_executor executor);
  void watch();  // the connection, once, for what it waits for
  void append_limits(sd_bus_message* message, const ScopeLimits& limits, bool& failed) const;
  asio::awaitable<Result<void>> wait(std::shared_ptr<Call> call, std::string what);
  Result<std::shared_ptr<Call>> send(sd_bus_message* message, bool failed, const std::string& what);
  Result<std::shared_ptr<Call>> send_start(const ScopeRequest& request, bool oom_policy);
  static int on_reply(sd_bus_message* message, void* call, sd_bus_error*);
  static int on_job_removed(sd_bus_message* message, void* self, sd_bus_error*);

  const SystemdLibrary& library_;
  asio::any_io_executor executor_;
  sd_bus* bus_ = nullptr;
  asio::posix::stream_descriptor descriptor_;
  asio::steady_timer timer_;
  bool reading_ = false, writing_ = false;
  std::set<std::shared_ptr<Call>> calls_;               // without a reply yet
  std::map<std::string, std::weak_ptr<Call>> starting_;  // by the unit's name
};

}  // namespace sandy::cgroup
