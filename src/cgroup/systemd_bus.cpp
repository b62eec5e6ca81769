#include "cgroup/systemd_bus.h"

#include <fcntl.h>
#include <poll.h>

#include <cmath>
#include <utility>

#include "cgroup/support.h"

namespace sandy::cgroup {
namespace {

constexpr auto kNoError = asio::as_tuple(asio::use_awaitable);
constexpr const char* kService = "org.freedesktop.systemd1";
constexpr const char* kManager = "/org/freedesktop/systemd1";
constexpr const char* kInterface = "org.freedesktop.systemd1.Manager";
constexpr const char* kMatch =
    "type='signal',sender='org.freedesktop.systemd1',path='/org/freedesktop/systemd1',interface='org.freedesktop.systemd1.Manager',member='JobRemoved'";
constexpr const char* kFix = "look at `systemctl --user status`; or leave the limits out, or set limits.best_effort to run without them";

}  // namespace

// One method call, and for StartTransientUnit also the job that it starts.
struct SystemdBus::Call {
  explicit Call(const asio::any_io_executor& executor) : changed(executor, asio::steady_timer::time_point::max()) {}

  std::shared_ptr<SystemdBus> bus;  // for the callback, as long as there is one to come
  asio::steady_timer changed;
  bool replied = false;
  std::string error_name, error;    // of the reply; both empty: it went well
  std::string job;                  // of the reply
  std::map<std::string, std::string> ended;  // jobs of this unit, with their results
};

Result<std::shared_ptr<SystemdBus>> SystemdBus::open(asio::any_io_executor executor, const std::string& address) {
  const std::string what = "the service manager's bus";
  if (systemd_library() == nullptr) return fail(what, "libsystemd.so.0 can't be loaded", "install libsystemd0; or leave the limits out, or set limits.best_effort");
  std::shared_ptr<SystemdBus> self(new SystemdBus(executor));
  const auto& library = self->library_;
  int error = library.bus_new(&self->bus_);
  if (error >= 0) error = library.bus_set_address(self->bus_, address.c_str());
  if (error >= 0) error = library.bus_set_bus_client(self->bus_, 1);
  if (error >= 0) error = library.bus_start(self->bus_);
  const int fd = error >= 0 ? library.bus_get_fd(self->bus_) : error;
  if (fd < 0) return fail(what, printable(address) + ": " + errno_text(-fd), kFix);
  self->descriptor_.assign(::fcntl(fd, F_DUPFD_CLOEXEC, 3));
  // Before any job that we start, so that no end of one is missed. Signals are sent to those alone who have subscribed.
  error = library.bus_add_match_async(self->bus_, nullptr, kMatch, &SystemdBus::on_job_removed, nullptr, self.get());
  if (error >= 0) error = library.bus_call_method_async(self->bus_, nullptr, kService, kManager, kInterface, "Subscribe", nullptr, nullptr, "");
  if (error < 0) return fail(what, errno_text(-error), kFix);
  self->process();
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
  auto opened = open(executor, manager_address());
  if (opened) one = *opened;
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
  for (const auto& [name, call] : std::exchange(starting_, {})) call->changed.cancel();
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
      if (!error) self->process();
    });
  };
  if ((events & POLLIN) != 0) wait(reading_, asio::posix::descriptor_base::wait_read);
  if ((events & POLLOUT) != 0) wait(writing_, asio::posix::descriptor_base::wait_write);
  std::uint64_t until = UINT64_MAX;  // microseconds of CLOCK_MONOTONIC, which steady_clock is
  if (library_.bus_get_timeout(bus_, &until) <= 0 || until == UINT64_MAX) return;
  timer_.expires_at(asio::steady_timer::time_point(std::chrono::microseconds(until)));
  timer_.async_wait([weak = weak_from_this()](const boost::system::error_code& error) {
    if (const auto self = weak.lock(); self && !error) self->process();
  });
}

void SystemdBus::process() {
  // A callback may let go of the last one who holds us.
  const auto self = shared_from_this();
  int did = 1;
  while (bus_ != nullptr && (did = library_.bus_process(bus_, nullptr)) > 0) {}
  if (did < 0) close();
  watch();
}

int SystemdBus::on_reply(sd_bus_message* message, void* data, sd_bus_error*) {
  auto& call = *static_cast<Call*>(data);
  const auto bus = std::exchange(call.bus, nullptr);
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
  found->second->ended[job] = result;
  found->second->changed.cancel();
  return 0;
}

void SystemdBus::append_limits(sd_bus_message* message, const ScopeLimits& limits, bool& failed) const {
  const auto number = [&](const char* name, std::uint64_t value) { failed = failed || library_.message_append(message, "(sv)", name, "t", value) < 0; };
  if (limits.memory) number("MemoryMax", *limits.memory);
  if (limits.swap) number("MemorySwapMax", *limits.swap);
  if (limits.tasks) number("TasksMax", *limits.tasks);
  if (limits.cpus) number("CPUQuotaPerSecUSec", static_cast<std::uint64_t>(std::llround(*limits.cpus * 1e6)));
  if (limits.io_read) failed = failed || library_.message_append(message, "(sv)", "IOReadBandwidthMax", "a(st)", 1, limits.io_path.c_str(), *limits.io_read) < 0;
  if (limits.io_write) failed = failed || library_.message_append(message, "(sv)", "IOWriteBandwidthMax", "a(st)", 1, limits.io_path.c_str(), *limits.io_write) < 0;
}

// Lets go of the message.
auto SystemdBus::send(sd_bus_message* message, bool failed, const std::string& what) -> Result<std::shared_ptr<Call>> {
  auto call = std::make_shared<Call>(executor_);
  call->bus = shared_from_this();
  const auto microseconds = static_cast<std::uint64_t>(std::chrono::microseconds(kLimit).count());
  failed = failed || library_.bus_call_async(bus_, nullptr, message, &SystemdBus::on_reply, call.get(), microseconds) < 0;
  library_.message_unref(message);
  if (!failed) return call;
  call->bus.reset();
  return fail(what, "a message that can't be sent");
}

auto SystemdBus::send_start(const std::string& name, const std::string& description, pid_t pid, const ScopeLimits& limits, bool oom_policy) -> Result<std::shared_ptr<Call>> {
  sd_bus_message* message = nullptr;
  bool failed = library_.message_new_method_call(bus_, &message, kService, kManager, kInterface, "StartTransientUnit") < 0;
  if (failed) return fail(name, "no memory for a message");
  failed = library_.message_append(message, "ss", name.c_str(), "fail") < 0 || library_.message_open_container(message, 'a', "(sv)") < 0 ||
           library_.message_append(message, "(sv)", "Description", "s", description.c_str()) < 0 ||
           library_.message_append(message, "(sv)", "PIDs", "au", 1, static_cast<std::uint32_t>(pid)) < 0 || library_.message_append(message, "(sv)", "Delegate", "b", 1) < 0 ||
           library_.message_append(message, "(sv)", "CollectMode", "s", "inactive-or-failed") < 0;
  if (oom_policy) failed = failed || library_.message_append(message, "(sv)", "OOMPolicy", "s", "continue") < 0;
  append_limits(message, limits, failed);
  failed = failed || library_.message_close_container(message) < 0 || library_.message_append(message, "a(sa(sv))", 0) < 0;
  auto call = send(message, failed, name);
  if (call) starting_[name] = *call;
  return call;
}

asio::awaitable<Result<void>> SystemdBus::start_scope(std::string name, std::string description, pid_t pid, ScopeLimits limits) {
  auto self = shared_from_this();
  for (bool oom_policy = true;; oom_policy = false) {
    if (bus_ == nullptr) co_return fail(name, "the bus is gone", kFix);
    auto call = send_start(name, description, pid, limits, oom_policy);
    if (!call) co_return std::unexpected(call.error());
    process();
    auto done = co_await wait(*call, name);
    starting_.erase(name);
    // A systemd before 253 knows no OOMPolicy for scopes, and then ends the whole of one that a process was killed in for want of memory.
    const bool unknown = !done && oom_policy && (*call)->error.find("OOMPolicy") != std::string::npos;
    if (!unknown) co_return done;
  }
}

asio::awaitable<Result<void>> SystemdBus::wait(std::shared_ptr<Call> call, std::string what) {
  const auto end = asio::steady_timer::clock_type::now() + kLimit;
  const auto ended = [&] { return call->ended.find(call->job); };
  while (bus_ != nullptr && (!call->replied || (call->error.empty() && ended() == call->ended.end())) && asio::steady_timer::clock_type::now() < end) {
    call->changed.expires_at(end);
    co_await call->changed.async_wait(kNoError);
  }
  // sd-bus' own words for a connection that ended, and for a call that took too long.
  constexpr const char* kNoReply = "org.freedesktop.DBus.Error.NoReply";
  if (call->error_name == kNoReply) co_return fail(what, "the service manager's bus gave no answer within " + std::to_string(kLimit.count()) + " s, or ended: " + printable(call->error), kFix);
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
  process();
  co_return co_await wait(*call, name);
}

}  // namespace sandy::cgroup
