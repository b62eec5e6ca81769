#include "fake_manager.h"

#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>

extern char** environ;

namespace sandy::cgroup {
namespace {

constexpr const char* kName = "org.freedesktop.systemd1";

void check(int result, const char* what) {
  if (result < 0) throw std::runtime_error(what);
}

// The socket's file is there before anybody listens.
bool listens(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::copy_n(path.c_str(), std::min(path.size() + 1, sizeof address.sun_path - 1), address.sun_path);
  const UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  return ::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
}

}  // namespace

FakeManager::FakeManager(Behaviour behaviour) : behaviour_(std::move(behaviour)) {
  char name[] = "/tmp/sandy-bus.XXXXXX";
  if (::mkdtemp(name) == nullptr) throw std::runtime_error("mkdtemp");
  directory_ = name;
  address_ = "unix:path=" + directory_ + "/bus";
  behaviour_.is_bus ? start_daemon() : listen();
  thread_ = std::thread([this] { serve(); });
}

void FakeManager::start_daemon() {
  const std::string option = "--address=" + address_;
  std::string words[] = {"dbus-daemon", "--session", "--nofork", "--nopidfile", "--nosyslog", option};
  char* argv[] = {words[0].data(), words[1].data(), words[2].data(), words[3].data(), words[4].data(), words[5].data(), nullptr};
  if (::posix_spawnp(&daemon_, argv[0], nullptr, nullptr, argv, environ) != 0) throw std::runtime_error("no dbus-daemon");
  check(sd_bus_new(&bus_), "sd_bus_new");
  check(sd_bus_set_address(bus_, address_.c_str()), "sd_bus_set_address");
  check(sd_bus_set_bus_client(bus_, 1), "sd_bus_set_bus_client");
  for (int turn = 0; !listens(directory_ + "/bus") && turn < 1000; ++turn) ::usleep(10'000);
  check(sd_bus_start(bus_), "sd_bus_start");
  check(sd_bus_request_name(bus_, kName, 0), "sd_bus_request_name");
  check(sd_bus_add_filter(bus_, nullptr, &FakeManager::on_message, this), "sd_bus_add_filter");
}

void FakeManager::listen() {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path = directory_ + "/bus";
  std::copy_n(path.c_str(), std::min(path.size() + 1, sizeof address.sun_path - 1), address.sun_path);
  listener_.reset(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  check(::bind(listener_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), "bind");
  check(::listen(listener_.get(), 4), "listen");
}

bool FakeManager::accept_client() {
  while (!ending_) {
    const int fd = ::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) {
      ::usleep(1'000);
      continue;
    }
    sd_id128_t id{};
    check(sd_id128_randomize(&id), "sd_id128_randomize");
    check(sd_bus_new(&bus_), "sd_bus_new");
    check(sd_bus_set_fd(bus_, fd, fd), "sd_bus_set_fd");
    check(sd_bus_set_server(bus_, 1, id), "sd_bus_set_server");
    check(sd_bus_start(bus_), "sd_bus_start");
    check(sd_bus_add_filter(bus_, nullptr, &FakeManager::on_message, this), "sd_bus_add_filter");
    return true;
  }
  return false;
}

FakeManager::~FakeManager() {
  ending_ = true;
  thread_.join();
  sd_bus_flush_close_unref(bus_);
  if (daemon_ > 0) {
    ::kill(daemon_, SIGTERM);
    int status = 0;
    ::waitpid(daemon_, &status, 0);
  }
  std::filesystem::remove_all(directory_);
}

std::vector<std::string> FakeManager::calls() {
  const std::lock_guard lock(mutex_);
  return calls_;
}

void FakeManager::serve() {
  if (listener_ && !accept_client()) return;
  while (!ending_) {
    int did = 0;
    while ((did = sd_bus_process(bus_, nullptr)) > 0) {}
    if (did < 0) return;
    sd_bus_wait(bus_, 10'000);
  }
}

void FakeManager::emit_job(unsigned number, const std::string& unit, const std::string& result) {
  const std::string path = "/org/freedesktop/systemd1/job/" + std::to_string(number);
  sd_bus_emit_signal(bus_, "/org/freedesktop/systemd1", "org.freedesktop.systemd1.Manager", "JobRemoved", "uoss", number, path.c_str(), unit.c_str(), result.c_str());
}

int FakeManager::start_unit(sd_bus_message* message) {
  const char *unit = nullptr, *mode = nullptr;
  check(sd_bus_message_read(message, "ss", &unit, &mode), "ss");
  std::string call = std::string("StartTransientUnit ") + unit + " " + mode;
  bool unknown = false;
  check(sd_bus_message_enter_container(message, 'a', "(sv)"), "a(sv)");
  while (sd_bus_message_enter_container(message, 'r', "sv") > 0) {
    const char* property = nullptr;
    check(sd_bus_message_read(message, "s", &property), "s");
    call += std::string(" ") + property;
    unknown = unknown || property == behaviour_.unknown_property;
    const char* contents = nullptr;
    check(sd_bus_message_peek_type(message, nullptr, &contents), "peek");
    if (std::string(contents) == "t") {
      std::uint64_t number = 0;
      check(sd_bus_message_read(message, "v", "t", &number), "t");
      call += "=" + std::to_string(number);
    } else {
      check(sd_bus_message_skip(message, "v"), "skip");
    }
    sd_bus_message_exit_container(message);
  }
  {
    const std::lock_guard lock(mutex_);
    calls_.push_back(call);
  }
  if (behaviour_.drops) {
    ::kill(daemon_, SIGKILL);
    return 1;
  }
  if (!behaviour_.answers) return 1;
  if (unknown) {
    const std::string text = "Cannot set property " + behaviour_.unknown_property + ", or unknown property.";
    return sd_bus_reply_method_errorf(message, "org.freedesktop.DBus.Error.PropertyReadOnly", "%s", text.c_str());
  }
  if (!behaviour_.error.empty()) return sd_bus_reply_method_errorf(message, behaviour_.error_name.c_str(), "%s", behaviour_.error.c_str());
  const unsigned job = ++jobs_ + 100;
  if (behaviour_.other_jobs_first) {
    emit_job(job + 1'000, unit, "failed");
    emit_job(job, "another.scope", "failed");
  }
  const std::string path = "/org/freedesktop/systemd1/job/" + std::to_string(job), name = unit;
  check(sd_bus_reply_method_return(message, "o", path.c_str()), "reply");
  if (!behaviour_.result.empty()) emit_job(job, name, behaviour_.result);
  return 1;
}

int FakeManager::on_message(sd_bus_message* message, void* data, sd_bus_error*) {
  auto& self = *static_cast<FakeManager*>(data);
  if (sd_bus_message_is_method_call(message, "org.freedesktop.systemd1.Manager", "StartTransientUnit") > 0) return self.start_unit(message);
  if (sd_bus_message_is_method_call(message, "org.freedesktop.systemd1.Manager", nullptr) > 0) {
    {
      const std::lock_guard lock(self.mutex_);
      self.calls_.emplace_back(sd_bus_message_get_member(message));
    }
    return sd_bus_reply_method_return(message, "");
  }
  return 0;
}

}  // namespace sandy::cgroup
