// A command that goes on without whoever asked for it: its output is kept, and can be read by several at a time.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "session/output_log.h"
#include "session/sandbox.h"

namespace sandy::session {

// Who is attached to a process. Gets `started`, then output and `credit`, at last `end` (PROTOCOL.md, "Processes"), without an id.
class ProcessReader {
 public:
  virtual ~ProcessReader() = default;
  virtual void on_process_event(wire::Json header, std::string payload) = 0;
};

class Process : public EventSink, public std::enable_shared_from_this<Process> {
 public:
  // `header` and `payload`: of an `exec` request. `words`: of its command, for people.
  static std::shared_ptr<Process> start(std::shared_ptr<Sandbox> sandbox, std::uint32_t number, wire::Json header, std::string payload, std::string words);

  struct Options {
    std::optional<std::uint64_t> offset;  // default: the oldest that is kept
    bool follow = true;
    bool hold = true;  // it waits with its output for this reader
  };
  // Attached until the `end`, or detach(). The reader must not be gone before.
  void attach(ProcessReader& reader, Options options);
  void detach(ProcessReader& reader);
  // A frame of a reader's request.
  void follow(ProcessReader& reader, wire::Json header, std::string payload);

  void signal(int number);
  void kill();

  std::uint32_t number() const { return number_; }
  const std::string& words() const { return words_; }
  bool ended() const { return end_.has_value(); }
  bool could_not_start() const { return ended() && !started_; }
  std::size_t kept_bytes() const { return static_cast<std::size_t>(log_.end() - log_.begin()); }
  // For a list: the fields of `started`, and those of its end.
  wire::Json description() const;

  void on_event(wire::Frame event) override;

 private:
  struct Attached {
    ProcessReader* reader;
    std::uint64_t position;   // of the next byte to send
    std::size_t window;       // bytes that it takes now
    bool follow, hold;
    bool told_start = false;
    std::deque<std::uint64_t> drained = {};  // `drained` is to come when it has had what is before these offsets
  };
  struct Input {
    ProcessReader* from;  // who is to have the credit; null: gone
    std::string bytes;
    bool eof;
  };

  Process(std::shared_ptr<Sandbox> sandbox, std::uint32_t number, std::string words, bool tty, std::size_t log_bytes);
  void send_to(std::size_t index);
  void send_to_all();
  void give_back();
  void pass_input();
  void pass_on(wire::Json header, std::string payload = {});
  void forget(std::size_t index);
  std::uint64_t held() const;
  void describe_start(wire::Json& out) const;

  std::shared_ptr<Sandbox> sandbox_;  // until the end
  std::uint32_t number_, id_ = 0;     // the client's, and of its request at the agent
  std::string words_;
  bool tty_;
  OutputLog log_;
  std::vector<Attached> attached_;
  // What the agent has sent and was not given back: the offset of each event's end, and what it counts for.
  std::deque<std::pair<std::uint64_t, std::size_t>> not_given_back_;
  std::size_t to_give_back_ = 0;
  std::deque<Input> input_;
  std::size_t input_window_ = wire::kWindowBytes;
  std::deque<ProcessReader*> drains_;  // whose `drain` is to be answered, in their order
  bool started_ = false;
  std::uint64_t pid_ = 0, started_ms_ = 0;
  std::optional<wire::Json> end_;
};

// The processes of one sandbox.
class Processes {
 public:
  // Of those that have ended: the last ones, as many as have no more output together.
  static constexpr std::size_t kMaxEnded = 64, kMaxEndedBytes = 16 << 20;

  std::shared_ptr<Process> start(const std::shared_ptr<Sandbox>& sandbox, wire::Json header, std::string payload, std::string words);
  std::shared_ptr<Process> find(std::uint64_t number) const;
  const std::vector<std::shared_ptr<Process>>& all();

 private:
  void sweep();

  std::vector<std::shared_ptr<Process>> processes_;  // by number
  std::uint32_t next_ = 1;
};

}  // namespace sandy::session
