// One `exec` request: a command, its input and output, its time limit and its end.
#pragma once

#include <boost/asio.hpp>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/kept_output.h"
#include "agent/request.h"
#include "agent/supervisor.h"
#include "agent/window.h"

namespace sandy::agent {

class Agent;

class Command : public Request, public std::enable_shared_from_this<Command> {
 public:
  Command(Agent& agent, std::uint32_t id);

  // Starts what `frame` asks for, and sends the request's `end` when it is over.
  void start(const wire::Frame& frame);
  void on_frame(wire::Frame frame) override;
  bool interrupted() const { return !interruption_.empty(); }
  // A process of some command was ended as there were too many bytes of all.
  void note_memory_kill(const std::string& name);

  // The supervisor says that the command's program is run.
  void on_executed(const Supervisor& supervisor);
  // The supervisor says that the command has ended (or could not be started).
  void on_ended(const Supervisor& supervisor);

 private:
  // A pipe from the command, or the master of its PTY.
  struct Output {
    Output(asio::any_io_executor executor, UniqueFd fd, std::string event, std::size_t keep)
        : pipe(executor, fd.release()), name(std::move(event)), kept(keep) {}
    asio::posix::stream_descriptor pipe;
    std::string name;               // "stdout" or "stderr"
    KeptOutput kept;
    std::optional<std::size_t> left; // after the end: what was in the pipe then, and is still to be read
    bool heavy = false;             // it filled the buffer: read in larger pieces
    std::size_t on_its_way = 0;     // read, and not all sent yet
    bool done = false;
  };

  bool open_streams(const wire::Frame& frame, CommandImage& image);
  void pass_streams(const wire::Frame& frame);
  asio::awaitable<void> start_in_group(CommandImage image, std::uint64_t timeout_ms);
  void kill_all();
  void begin_drain();
  void note_drained(const Output& output, std::size_t bytes);
  asio::awaitable<void> read_output(std::shared_ptr<Output> output);
  asio::awaitable<bool> deliver(Output& output, std::string bytes);
  ssize_t read_some(Output& output, std::size_t most, std::string& streamed);
  asio::awaitable<void> write_input();
  asio::awaitable<void> run(std::uint64_t timeout_ms);
  void interrupt(std::string reason);  // "timed_out" or "cancelled": kill everything of it
  void could_not_start(int error_number, bool cwd = false);
  wire::Json result() const;

  Agent& agent_;
  std::uint32_t id_;
  bool stream_ = false, tty_ = false, more_ = false;
  bool starting_ = false;  // it waits for its control group
  std::uint64_t group_ = 0;
  std::chrono::steady_clock::time_point started_;
  Supervisor* supervisor_ = nullptr;  // until the end
  asio::steady_timer changed_;        // wakes run()
  std::shared_ptr<Output> outputs_[2];
  Window window_;
  // For each `drain` frame: what is to be sent of each output before the answer.
  struct Drain {
    std::size_t left[2];
  };
  std::vector<Drain> drains_;
  bool told_start_ = false;
  std::optional<asio::posix::stream_descriptor> input_;
  std::string pending_;               // input not yet written
  bool input_eof_ = false, writing_ = false;
  std::string interruption_;
  bool ended_ = false;
  int status_ = 0, exec_errno_ = 0;
  bool chdir_failed_ = false;
  rusage usage_{};
  std::string killed_;
  std::uint64_t memory_kills_ = 0;
};

}  // namespace sandy::agent
