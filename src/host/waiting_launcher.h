// A sandy-launch that becomes bubblewrap once it is told how. What bubblewrap is to be in can be made around it meanwhile: a control group.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/unique_fd.h"
#include "host/spawn.h"

namespace sandy::host {

// For give(): what becomes kFirstDescriptor and on, and the launcher's words after its name.
struct LaunchOrders {
  std::vector<UniqueFd> descriptors;
  std::vector<std::string> words;
};

class WaitingLauncher {
 public:
  static Result<std::unique_ptr<WaitingLauncher>> start();
  // It ends by itself, without having started anything, once what was asked for around it is there, or isn't to come any more; nobody waits for that.
  ~WaitingLauncher();
  WaitingLauncher(const WaitingLauncher&) = delete;
  WaitingLauncher& operator=(const WaitingLauncher&) = delete;

  pid_t pid() const { return child_.pid; }
  // Its end is another's to wait for.
  Child take();
  // It ends at once: nothing is still to be made around it.
  void dismiss();
  UniqueFd take_messages() { return std::move(messages_); }  // read end of its stderr, and bubblewrap's
  // It goes on, and this one is of no more use.
  Result<void> give(LaunchOrders orders);

 private:
  WaitingLauncher() = default;

  Child child_;
  UniqueFd orders_, messages_;
};

}  // namespace sandy::host
