#include "cgroup/systemd_bus.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include "cgroup/support.h"

namespace sandy::cgroup {
namespace {

constexpr auto kNoError = asio::as_tuple(asio::use_awaitable);
constexpr const char* kService = "org.freedesktop.systemd1";
constexpr const char* kManager = "/org/freedesktop/systemd1";
constexpr const char* kInterface = "org.freedesktop.systemd1.Manager";
constexpr const char* kFromService = "sender='org.freedesktop.systemd1',";
constexpr const char* kMatch =
    "type='signal',path='/org/freedesktop/systemd1',interface='org.freedesktop.systemd1.Manager',member='JobRemoved'";
constexpr const char* kFix = "look at `systemctl --user status`; or leave the limits out, or set limits.best_effort to run without them";

}  // namespace

struct SystemdBus::Scope {
  ScopeRequest request;
  std::shared_ptr<Call> call;
};

// One method call, and for StartTransientUnit also the job that it starts.
struct SystemdBus::Call {
  explicit Call(const asio::any_io_executor& executor) : changed(executor, asio::steady_timer::time_point::max()) {}

  SystemdBus* bus = nullptr;        // which calls back, and is there then
  asio::steady_timer changed;
  bool replied = false;
  std::string error_name, error;    // of the reply; both empty: it went well
  std::string job;                  // of the reply
  std::map<std::string, std::string> ended;  // jobs of this unit, with their results
};

Result<std::shared_ptr<SystemdBus>> SystemdBus::open(asio::any_io_executor executor, const ManagerAddress& address) {
  const std::string what = "the service manager's bus";
  if (systemd_library() == nullptr) return fail(what, "libsystemd.so.0 can't be loaded", "install libsystemd0; or leave the limits out, or set limits.best_effort");
  std::shared_ptr<SystemdBus> self(new SystemdBus(executor));
  const auto& library = self->library_;
  int error = library.bus_new(&self->bus_);
  if (error >= 0) error = library.bus_set_address(self->bus_, address.address.c_str());
  if (error >= 0 && address.is_bus) error = library.bus_set_bus_client(self->bus_, 1);
  if (error >= 0) error = library.bus_start(self->bus_);
  const int fd = error >= 0 ? library.bus_get_fd(self->bus_) : error;
  if (fd < 0) return fail(what, printable(address.address) + ": " + errno_text(-fd), kFix);
  self->descriptor_.assign(::fcntl(fd, F_DUPFD_CLOEXEC, 3));
  // (0: a process that this PID namespace doesn't have.)
  ucred peer{};
  socklen_t length = sizeof peer;
  if (::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0 || peer.pid == 0) {
    return fail(what, "its processes are in another PID namespace, and what it would put into a control group is not what we mean", "leave the limits out, or set limits.best_effort; in a container, delegate a cgroup");
  }
  // Before any job that we start, so that no end of one is missed. On the bus, signals are sent to those alone who have subscribed; otherwise to all.
  const std::string match = std::string(address.is_bus ? kFromService : "") + kMatch;
  error = library.bus_add_match_async(self->bus_, nullptr, match.c_str(), &SystemdBus::on_job_removed, nullptr, self.get());
  if (error >= 0 && address.is_bus) error = library.bus_call_method_async(self->bus_, nullptr, kService, kManager, kInterface, "Subscribe", nullptr, nullptr, "");
  if (error < 0) return fail(what, errno_text(-error), kFix);
  self->advance();
  return self;
}

namespace {

std::shared_ptr<SystemdBus>& the_one() {
  static std::shared_ptr<SystemdBus> bus;
  return bus;
}

}  // namespace

Result<std::shared_ptr<SystemdBus>> SystemdBus::shared(asio::any_io_executor executor) {
  auto& one = the_one();
  if (one && one->alive()) return one;
  Result<std::shared_ptr<SystemdBus>> opened = fail("the service manager's bus", "there is none", kFix);
  for (const auto& address : manager_addresses()) {
    opened = open(executor, address);
    if (!opened) continue;
    one = *opened;
    break;
  }
  return opened;
}

void SystemdBus::shutdown() {
  if (const auto one = std::exchange(the_one(), nullptr)) one->close();
}

SystemdBus::SystemdBus(asio::any_io_executor executor) : library_(*systemd_library()), executor_(executor), descriptor_(executor), timer_(executor) {}

SystemdBus::~SystemdBus() { close(); }

void SystemdBus::close() {
  if (bus_ == nullptr) return;
  library_.bus_close_unref(std::exchange(bus_, nullptr));
  boost::system::error_code ignored;
  descriptor_.close(ignored);
  timer_.cancel();
  for (const auto& call : std::exchange(calls_, {})) call->changed.cancel();
  for (const auto& [name, waiting] : std::exchange(starting_, {})) {
    if (const auto call = waiting.lock()) call->changed.cancel();
  }
}

void SystemdBus::watch() {
  if (bus_ == nullptr) return;
  const int events = library_.bus_get_events(bus_);
  const auto wait = [this](bool& waiting, asio::posix::descriptor_base::wait_type what) {
    if (std::exchange(waiting, true)) return;
    descriptor_.async_wait(what, [weak = weak_from_this(), &waiting](const boost::system::error_code& error) {
      const auto self = weak.lock();
      if (!self) return;
      waiting = false;
      if (!error) self->advance();
    });
  };
  if ((events & POLLIN) != 0) wait(reading_, asio::posix::descriptor_base::wait_read);
  if ((events & POLLOUT) != 0) wait(writing_, asio::posix::descriptor_base::wait_write);
  std::uint64_t until = UINT64_MAX;  // microseconds of CLOCK_MONOTONIC, which steady_clock is
  if (library_.bus_get_timeout(bus_, &until) <= 0 || until == UINT64_MAX) return;
  timer_.expires_at(asio::steady_timer::time_point(std::chrono::microseconds(until)));
  timer_.async_wait([weak = weak_from_this()](const boost::system::error_code& error) {
    if (const auto self = weak.lock(); self && !error) self->advance();
  });
}

void SystemdBus::advance() {
  // A callback may let go of the last one who holds us.
  const auto self = shared_from_this();
  int did = 1;
  while (bus_ != nullptr && (did = library_.bus_process(bus_, nullptr)) > 0) {}
  if (did < 0) close();
  watch();
}

int SystemdBus::on_reply(sd_bus_message* message, void* data, sd_bus_error*) {
  auto& call = *static_cast<Call*>(data);
  auto* const bus = call.bus;
  const auto kept = std::ranges::find(bus->calls_, &call, &std::shared_ptr<Call>::get);
  const auto self = kept == bus->calls_.end() ? nullptr : bus->calls_.extract(kept).value();
  call.replied = true;
  if (const sd_bus_error* const error = bus->library_.message_get_error(message); error != nullptr) {
    call.error_name = error->name != nullptr ? error->name : "an error";
    call.error = error->message != nullptr ? error->message : call.error_name;
  } else if (const char* job = nullptr; bus->library_.message_read(message, "o", &job) > 0 && job != nullptr) {
    call.job = job;
  }
  call.changed.cancel();
  return 0;
}

int SystemdBus::on_job_removed(sd_bus_message* message, void* data, sd_bus_error*) {
  auto& self = *static_cast<SystemdBus*>(data);
  std::uint32_t number = 0;
  const char *job = nullptr, *unit = nullptr, *result = nullptr;
  if (self.library_.message_read(message, "uoss", &number, &job, &unit, &result) <= 0) return 0;
  const auto found = self.starting_.find(unit);
  if (found == self.starting_.end()) return 0;
  if (const auto call = found->second.lock()) {
    call->ended[job] = result;
    call->changed.cancel();
  } else {
    self.starting_.erase(found);  // given up
  }
  return 0;
}

void SystemdBus::append_limits(sd_bus_message* message, const ScopeLimits& limits, bool& failed) const {
  const auto number = [&](const char* name, std::uint64_t value) { failed = failed || library_.message_append(message, "(sv)", name, "t", value) < 0; };
  if (limits.memory) number("MemoryMax", *limits.memory);
  if (limits.swap) number("MemorySwapMax", *limits.swap);
  if (limits.pids) number("TasksMax", *limits.pids);
  if (limits.cpus) number("CPUQuotaPerSecUSec", std::isinf(*limits.cpus) ? UINT64_MAX : static_cast<std::uint64_t>(std::llround(*limits.cpus * 1e6)));
  if (limits.io_read) failed = failed || library_.message_append(message, "(sv)", "IOReadBandwidthMax", "a(st)", 1, limits.io_path.c_str(), *limits.io_read) < 0;
  if (limits.io_write) failed = failed || library_.message_append(message, "(sv)", "IOWriteBandwidthMax", "a(st)", 1, limits.io_path.c_str(), *limits.io_write) < 0;
}

// Lets go of the message.
auto SystemdBus::send(sd_bus_message* message, bool failed, const std::string& what) -> Result<std::shared_ptr<Call>> {
  auto call = std::make_shared<Call>(executor_);
  call->bus = this;
  // No limit of sd-bus' own: where we come to wait late, it would be over before what has come is read.
  failed = failed || library_.bus_call_async(bus_, nullptr, message, &SystemdBus::on_reply, call.get(), UINT64_MAX) < 0;
  library_.message_unref(message);
  if (failed) return fail(what, "a message that can't be sent");
  calls_.insert(call);
  return call;
}

auto SystemdBus::send_start(const ScopeRequest& request, bool oom_policy) -> Result<std::shared_ptr<Call>> {
  sd_bus_message* message = nullptr;
  bool failed = library_.message_new_method_call(bus_, &message, kService, kManager, kInterface, "StartTransientUnit") < 0;
  if (failed) return fail(request.name, "no memory for a message");
  failed = library_.message_append(message, "ss", request.name.c_str(), "fail") < 0 || library_.message_open_container(message, 'a', "(sv)") < 0 ||
           library_.message_append(message, "(sv)", "Description", "s", request.description.c_str()) < 0 ||
           library_.message_append(message, "(sv)", "PIDs", "au", 1, static_cast<std::uint32_t>(request.pid)) < 0 ||
           library_.message_append(message, "(sv)", "Delegate", "b", 1) < 0 || library_.message_append(message, "(sv)", "CollectMode", "s", "inactive-or-failed") < 0;
  if (oom_policy) failed = failed || library_.message_append(message, "(sv)", "OOMPolicy", "s", "continue") < 0;
  append_limits(message, request.limits, failed);
  failed = failed || library_.message_close_container(message) < 0 || library_.message_append(message, "a(sa(sv))", 0) < 0;
  auto call = send(message, failed, request.name);
  if (call) starting_[request.name] = *call;
  return call;
}

auto SystemdBus::ask_for_scope(ScopeRequest request) -> Result<std::shared_ptr<Scope>> {
  if (bus_ == nullptr) return fail(request.name, "the bus is gone", kFix);
  auto call = send_start(request, true);
  if (!call) return std::unexpected(call.error());
  advance();
  return std::make_shared<Scope>(std::move(request), std::move(*call));
}

asio::awaitable<Result<void>> SystemdBus::wait_for_scope(std::shared_ptr<Scope> scope) {
  auto self = shared_from_this();
  const auto& name = scope->request.name;
  auto done = co_await wait(scope->call, name);
  // A systemd before 253 knows no OOMPolicy for scopes, and then ends the whole of one that a process was killed in for want of memory.
  if (!done && bus_ != nullptr && scope->call->error.find("OOMPolicy") != std::string::npos) {
    auto again = send_start(scope->request, false);
    if (!again) co_return std::unexpected(again.error());
    scope->call = std::move(*again);
    advance();
    done = co_await wait(scope->call, name);
  }
  starting_.erase(name);
  co_return done;
}

asio::awaitable<Result<void>> SystemdBus::wait(std::shared_ptr<Call> call, std::string what) {
  const auto end = asio::steady_timer::clock_type::now() + kLimit;
  const auto ended = [&] { return call->ended.find(call->job); };
  while (bus_ != nullptr && (!call->replied || (call->error.empty() && ended() == call->ended.end())) && asio::steady_timer::clock_type::now() < end) {
    call->changed.expires_at(end);
    co_await call->changed.async_wait(kNoError);
  }
  // sd-bus' own words for a connection that ended.
  constexpr const char* kNoReply = "org.freedesktop.DBus.Error.NoReply";
  if (call->error_name == kNoReply) co_return fail(what, "the service manager's bus ended: " + printable(call->error), kFix);
  if (!call->error.empty()) co_return fail(what, "systemd refuses it: " + printable(call->error) + " (" + printable(call->error_name) + ")", kFix);
  if (bus_ == nullptr) co_return fail(what, "the service manager's bus ended the connection", kFix);
  if (!call->replied || ended() == call->ended.end()) {
    // What comes later is for nobody: a connection that is this slow is not used again.
    close();
    co_return fail(what, "systemd did not answer within " + std::to_string(kLimit.count()) + " s", kFix);
  }
  if (ended()->second != "done") co_return fail(what, "systemd's job for it ended with \"" + printable(ended()->second) + "\"", kFix);
  co_return Result<void>();
}

asio::awaitable<Result<void>> SystemdBus::set_limits(std::string name, ScopeLimits limits) {
  auto self = shared_from_this();
  if (bus_ == nullptr) co_return fail(name, "the bus is gone", kFix);
  sd_bus_message* message = nullptr;
  bool failed = library_.message_new_method_call(bus_, &message, kService, kManager, kInterface, "SetUnitProperties") < 0;
  if (failed) co_return fail(name, "no memory for a message");
  failed = library_.message_append(message, "sb", name.c_str(), 1) < 0 || library_.message_open_container(message, 'a', "(sv)") < 0;
  append_limits(message, limits, failed);
  failed = failed || library_.message_close_container(message) < 0;
  auto call = send(message, failed, name);
  if (!call) co_return std::unexpected(call.error());
  (*call)->ended[std::string()] = "done";  // there is no job
  advance();
  co_return co_await wait(*call, name);
}

}  // namespace sandy::cgroup
