// A service manager that does what a test wants: on a D-Bus daemon of its own, or by itself.
#pragma once

#include <sys/types.h>
#include <systemd/sd-bus.h>

#include <atomic>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/unique_fd.h"
#include "cgroup/support.h"

namespace sandy::cgroup {

class FakeManager {
 public:
  struct Behaviour {
    std::string error_name, error;      // of StartTransientUnit
    std::string unknown_property;       // refused, as an old systemd does
    std::string result = "done";        // of the job; "": it never ends
    bool answers = true;
    bool is_bus = true;
    bool other_jobs_first = false;      // of the same unit's name, and of other units
    bool drops = false;                 // the connection, in the midst of it
  };

  explicit FakeManager(Behaviour behaviour);
  ~FakeManager();

  ManagerAddress address() const { return {address_, behaviour_.is_bus}; }
  // "METHOD unit Property=..." of each call, in order.
  std::vector<std::string> calls();

 private:
  void start_daemon();
  void listen();
  bool accept_client();
  void serve();
  static int on_message(sd_bus_message* message, void* self, sd_bus_error*);
  int start_unit(sd_bus_message* message);
  void emit_job(unsigned number, const std::string& unit, const std::string& result);

  Behaviour behaviour_;
  std::string directory_, address_;
  pid_t daemon_ = -1;
  UniqueFd listener_;
  sd_bus* bus_ = nullptr;
  std::atomic<bool> ending_ = false;
  std::thread thread_;
  std::mutex mutex_;
  std::vector<std::string> calls_;
  unsigned jobs_ = 0;
};

}  // namespace sandy::cgroup
