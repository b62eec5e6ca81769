// The agent: runs inside the sandbox as its pid 1, and does what `sandy` asks for over one socket.
#pragma once

#include <boost/asio.hpp>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "agent/request.h"
#include "agent/supervisor.h"
#include "agent/workspace_names.h"
#include "base/unique_fd.h"
#include "session/wire/channel.h"
#include "session/wire/configuration.h"
#include "session/wire/quiet.h"

namespace sandy::agent {

namespace asio = boost::asio;

class Command;

// Single-threaded, but for `file_pool()`, whose threads do blocking file operations.
class Agent {
 public:
  Agent(asio::io_context& io, UniqueFd socket);

  // Serves until the socket closes. Then the process is to end, and with it, as it is pid 1, all of the sandbox.
  asio::awaitable<void> serve();

  asio::io_context& io() { return io_; }
  wire::Channel& channel() { return *channel_; }
  const wire::Configuration& configuration() const { return configuration_; }
  asio::thread_pool& file_pool();

  // Starts a command under a supervisor that belongs to `owner` until the command has ended.
  Supervisor* start_command(CommandImage image, std::shared_ptr<Command> owner, int& error_number);
  // The same, in a control group of its own, which it waits for where none is ready; `group` is that one's number. Null, without an error: not any more, as the
  // owner doesn't want it.
  asio::awaitable<Supervisor*> start_in_group(std::uint32_t id, CommandImage image, std::shared_ptr<Command> owner, std::uint64_t& group, int& error_number);

  // Who waits for a control group looks again.
  void spare_changed() { spare_changed_.cancel(); }

  // /dev/null, and a buffer for reading pipes, which nobody keeps data in across a suspension.
  int null_fd() const { return null_.get(); }
  std::string& scratch() { return scratch_; }

  // Ends request `id`: its `end` frame goes out after `frames`, and frames for it are ignored from now on.
  void end(std::uint32_t id, wire::Json fields, std::vector<std::pair<wire::Json, std::string>> frames = {});

  // Makes the top level of `/` and of the workspace agree, if this sandbox is one where they do.
  void sync_names();
  // Where the file of a mapped path is (WorkspaceNames::locate).
  std::string locate(const std::string& path) const;

 private:
  bool configure(const wire::Frame& frame);
  void dispatch(wire::Frame frame);
  asio::awaitable<void> watch_ends();      // supervisors' eventfd
  asio::awaitable<void> watch_children();  // SIGCHLD
  void reap();
  void make_spare();
  void announce_spare();
  void lose(std::unique_ptr<Supervisor> supervisor);
  void on_placed(const wire::Frame& frame);
  asio::awaitable<void> watch_memory();

  asio::io_context& io_;
  std::shared_ptr<wire::Channel> channel_;
  wire::Configuration configuration_;
  asio::posix::stream_descriptor wake_, children_;
  UniqueFd null_;
  std::shared_ptr<wire::Quiet> quiet_;
  std::string scratch_;
  std::unique_ptr<asio::thread_pool> file_pool_;
  std::unique_ptr<WorkspaceNames> names_;
  std::map<std::uint32_t, std::shared_ptr<Request>> open_;
  struct Supervised {
    std::unique_ptr<Supervisor> supervisor;
    std::shared_ptr<Command> owner;  // until the command has ended
  };
  std::map<pid_t, Supervised> supervised_;  // by the supervisor's pid
  // One that waits for the next command, with control groups.
  struct Spare {
    pid_t pid = -1;           // in supervised_; -1: none
    pid_t command = -1;       // what is to be placed, once it is known
    bool placed = false;
    std::uint64_t group = 0;  // placed; 0: `sandy` could not
  };
  Spare spare_;
  // Supervisors that were killed, by what they had started: that may still be on their stack.
  std::map<pid_t, std::unique_ptr<Supervisor>> lost_;
  int spare_error_ = 0;  // why the last one could not be made
  asio::steady_timer spare_changed_;
  asio::steady_timer memory_timer_;
  std::string oom_score_adj_;  // of commands, with control groups
};

}  // namespace sandy::agent
