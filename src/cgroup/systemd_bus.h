// The caller's service manager, over D-Bus (org.freedesktop.systemd1(5)): scopes, which are control groups of processes that somebody else started. Everything is
// on one thread, or one strand.
#pragma once

#include <sys/types.h>

#include <boost/asio.hpp>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "cgroup/systemd_library.h"

namespace sandy::cgroup {

namespace asio = boost::asio;

// Resource properties of a unit (systemd.resource-control(5)). What isn't set is left as it is.
struct ScopeLimits {
  std::optional<std::uint64_t> memory, swap;       // bytes: MemoryMax, MemorySwapMax
  std::optional<double> cpus;                      // cores: CPUQuotaPerSecUSec
  std::optional<std::uint64_t> tasks;              // TasksMax
  std::optional<std::uint64_t> io_read, io_write;  // bytes a second: IOReadBandwidthMax, IOWriteBandwidthMax
  std::string io_path;                             // a file on the disk that they are for
};

class SystemdBus : public std::enable_shared_from_this<SystemdBus> {
 public:
  static constexpr std::chrono::seconds kLimit{2};  // for all of a call

  // Connects, without waiting for it. `address`: manager_address(), or a test's.
  static Result<std::shared_ptr<SystemdBus>> open(asio::any_io_executor executor, const std::string& address);
  // One for all of this process, which is opened again where it has ended. Its user calls shutdown() before `executor` goes.
  static Result<std::shared_ptr<SystemdBus>> shared(asio::any_io_executor executor);
  static void shutdown();
  ~SystemdBus();
  SystemdBus(const SystemdBus&) = delete;
  SystemdBus& operator=(const SystemdBus&) = delete;

  // A transient scope `name`, delegated to us, with `pid` in it: returns when systemd says that the job is done. Its processes go on when one is killed for want
  // of memory (OOMPolicy=continue), where this systemd knows that.
  asio::awaitable<Result<void>> start_scope(std::string name, std::string description, pid_t pid, ScopeLimits limits);
  // Other limits for a scope that runs.
  asio::awaitable<Result<void>> set_limits(std::string name, ScopeLimits limits);

  bool alive() const { return bus_ != nullptr; }
  // Ends what waits; it is not usable any more.
  void close();

 private:
  struct Call;
  explicit SystemdBus(asio::any_io_executor executor);
  void watch();  // the connection, once, for what it waits for
  void process();
  void append_limits(sd_bus_message* message, const ScopeLimits& limits, bool& failed) const;
  asio::awaitable<Result<void>> wait(std::shared_ptr<Call> call, std::string what);
  Result<std::shared_ptr<Call>> send(sd_bus_message* message, bool failed, const std::string& what);
  Result<std::shared_ptr<Call>> send_start(const std::string& name, const std::string& description, pid_t pid, const ScopeLimits& limits, bool oom_policy);
  static int on_reply(sd_bus_message* message, void* call, sd_bus_error*);
  static int on_job_removed(sd_bus_message* message, void* self, sd_bus_error*);

  const SystemdLibrary& library_;
  asio::any_io_executor executor_;
  sd_bus* bus_ = nullptr;
  asio::posix::stream_descriptor descriptor_;
  asio::steady_timer timer_;
  bool reading_ = false, writing_ = false;
  std::map<std::string, std::shared_ptr<Call>> starting_;  // by the unit's name
};

}  // namespace sandy::cgroup
