// Between one command in a sandbox and this process's stdin, stdout, stderr, terminal and signals.
#pragma once

#include <boost/asio.hpp>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/output.h"
#include "cli/terminal.h"
#include "session/sandbox.h"

namespace sandy::cli {

namespace asio = boost::asio;

struct RelayOptions {
  std::vector<std::string> argv;
  std::string cwd;               // in the sandbox; "": its default
  std::vector<std::string> env;  // NAME=value
  std::uint64_t timeout_ms = 0;  // 0: none
  bool tty = false;              // a PTY, and our terminal in raw mode
  bool input = true;             // ours is the command's
  bool detachable = false;       // Ctrl-P Ctrl-Q at a terminal leaves the command alone
};

// Where frames of the command's request go to.
class CommandLink {
 public:
  virtual ~CommandLink() = default;
  virtual void follow(wire::Json header, std::string payload) = 0;
  // To a question of the sandbox's network.
  virtual void answer(std::uint32_t question, bool allow, bool always) = 0;
};

class Relay : public session::EventSink, public std::enable_shared_from_this<Relay> {
 public:
  // `options` must outlive it.
  Relay(asio::io_context& io, const RelayOptions& options);

  // An `exec` request for the command.
  wire::Json request_header() const;
  std::string request_payload() const;
  void on_event(wire::Frame event) override;

  // The command's `end`, after all of its output was written.
  asio::awaitable<wire::Json> run(std::shared_ptr<CommandLink> link);

  // Asks at the terminal, one question after another. The answer is what is typed next, and not the command's; output waits meanwhile. The command's
  // end, and a signal of ours, are a refusal of what is open. Numbers as in Sandbox::OnQuestion.
  void ask(std::uint32_t number, const std::string& target);

  // The signal that had the command cancelled: a reader that went away, or one that we got.
  int cancelled_by() const { return cancelled_by_; }
  // Why output could not be written, other than that nobody reads it: an errno value, or 0.
  int output_error() const { return output_error_; }
  // Its user has left it alone: run() returned for that.
  bool detached() const { return detached_; }

 private:
  void take_start(const wire::Frame& event);
  void send_size();
  void prompt();
  const char* line_end() const { return tty_ ? "\r\n" : "\n"; }
  void take_answer(std::string_view keys);
  void answer(std::string_view word);
  void withdraw(const std::string& why);
  bool take_detach_keys(std::string& keys);
  void cancel(int signal);
  void give_up_after(std::chrono::milliseconds limit);
  void leave();
  void end_here(wire::Json end);
  asio::awaitable<void> give_up();
  asio::awaitable<void> cancel_later();
  asio::awaitable<void> relay_input();
  asio::awaitable<void> relay_signals();

  asio::io_context& io_;
  const RelayOptions& options_;
  std::shared_ptr<CommandLink> link_;
  std::optional<ChangedTerminal> terminal_;
  std::deque<wire::Frame> events_;
  std::deque<std::pair<std::uint32_t, std::string>> questions_;
  asio::steady_timer asked_;  // until no question is open
  std::string typed_;
  bool tty_, input_ended_ = false, detach_begun_ = false;
  asio::steady_timer changed_, input_changed_, given_up_;
  bool giving_up_ = false;
  std::size_t window_ = wire::kWindowBytes;
  Output out_, err_;
  bool ended_ = false, detached_ = false, command_ended_ = false;  // command_ended_: its `end` may wait behind output
  int cancelled_by_ = 0, output_error_ = 0;
};

}  // namespace sandy::cli
