// The limits of one sandbox that the kernel enforces, and what they did to its commands: which control group each command has, and what to say of that at its end.
#pragma once

#include <boost/asio.hpp>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cgroup/sandbox_cgroup.h"
#include "session/wire/channel.h"

namespace sandy::session {

namespace asio = boost::asio;

class Limits : public std::enable_shared_from_this<Limits> {
 public:
  static std::shared_ptr<Limits> make(asio::any_io_executor executor, std::unique_ptr<cgroup::SandboxCgroup> group);

  // `spare`, `group` and `kill` (PROTOCOL.md): whether it was one of these, which are for nobody else. The agent is not trusted: it can ask for no more than it
  // has processes, and say only which of its own commands has a group.
  bool take(const wire::Frame& event, wire::Channel& channel);
  // A command begins; it has ended, with the agent's `end` of it, to which what it used is added, and which limits it met.
  void begin(std::uint32_t command);
  void finish(std::uint32_t command, wire::Json& end);

  cgroup::SandboxCgroup& group() { return *group_; }
  // What all sandboxes of this process share is let go.
  static void shutdown() { cgroup::SystemdBus::shutdown(); }
  // Nothing is watched any more. The group goes with the last one who has it.
  void close();

 private:
  struct Command {
    std::uint32_t group = 0;  // none yet
    std::uint64_t throttled_us = 0, forks_refused = 0;  // when it began
    std::uint64_t oom_kills = 0;
    std::string killed;  // a process of its that was, by name, where that was seen
  };

  Limits(asio::any_io_executor executor, std::unique_ptr<cgroup::SandboxCgroup> group);
  void watch();
  void note_kills();

  std::unique_ptr<cgroup::SandboxCgroup> group_;
  asio::posix::stream_descriptor changes_;  // inotify: OOM kills
  std::uint64_t named_kills_ = 0;  // of the whole sandbox, when we last saw who was dying
  std::map<std::uint32_t, Command> commands_;
};

// What the agent did to a command for the limit of memory that it looks after (plan::SandboxPlan::watched_memory; 0: none), in words, in its `end`; after
// finish(). What it says for this is taken out.
void tell_watched_limit(std::uint64_t memory, wire::Json& end);

}  // namespace sandy::session
