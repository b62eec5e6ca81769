#include "cli/foreground_command.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <boost/asio.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <optional>
#include <stdexcept>

#include "cli/outcome_file.h"
#include "cli/terminal.h"
#include "cli/verbs.h"
#include "session/planning.h"
#include "session/sandbox.h"

namespace sandy::cli {
namespace {

namespace asio = boost::asio;
using wire::Json;

using namespace asio::experimental::awaitable_operators;

constexpr auto kNoError = asio::as_tuple(asio::use_awaitable);
constexpr auto kTerminateGrace = std::chrono::seconds(5);  // from a passed-on SIGTERM to the kill
constexpr auto kEndGrace = std::chrono::seconds(10);       // from a kill that was asked for to giving up on the agent

void note(const std::string& text) { std::fprintf(stderr, "sandy: %s\n", text.c_str()); }

// An output of ours. Its descriptor's flags are shared with whoever gave it to us, so it is opened anew to be non-blocking (pipes, terminals); where
// that can't be had, writes may block.
class Output {
 public:
  Output(asio::io_context& io, int fd) : fd_(fd) {
    struct stat st{};
    if (::fstat(fd, &st) != 0 || !(S_ISFIFO(st.st_mode) || ::isatty(fd) == 1)) return;
    UniqueFd own(::open(("/proc/self/fd/" + std::to_string(fd)).c_str(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
    if (own) stream_.emplace(io, own.release());
  }

  // The errno of a failure; EPIPE: nobody reads any more.
  asio::awaitable<int> write(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t n = ::write(stream_ ? stream_->native_handle() : fd_, bytes.data(), bytes.size());
      if (n >= 0) {
        bytes.remove_prefix(static_cast<std::size_t>(n));
      } else if (errno == EAGAIN && stream_) {
        const auto [error] = co_await stream_->async_wait(asio::posix::descriptor_base::wait_write, kNoError);
        if (error || abandoned_) co_return EPIPE;
      } else if (errno != EINTR) {
        co_return errno;
      }
    }
    co_return 0;
  }

  // Ends a write that waits for a reader.
  void abandon() {
    abandoned_ = true;
    if (stream_) stream_->cancel();
  }

 private:
  int fd_;
  std::optional<asio::posix::stream_descriptor> stream_;
  bool abandoned_ = false;
};

class Foreground : public session::EventSink, public std::enable_shared_from_this<Foreground> {
 public:
  Foreground(asio::io_context& io, const ForegroundOptions& options)
      : io_(io), options_(options), changed_(io, asio::steady_timer::time_point::max()), given_up_(io), out_(io, 1), err_(io, 2) {}

  void on_event(wire::Frame event) override {
    events_.push_back(std::move(event));
    changed_.cancel();
  }

  // What the sandbox is started with.
  session::Sandbox::Request request() {
    Json lengths = Json::array();
    session::Sandbox::Request out;
    auto add = [&](const std::string& text) {
      lengths.push_back(text.size());
      out.payload += text;
    };
    for (const auto& word : options_.argv) add(word);
    add("");
    out.header = Json{{"op", "exec"}, {"argc", options_.argv.size()}, {"shell", false}, {"merge", false}, {"stream", true}, {"stdin", "pipe"},
                      {"timeout_ms", options_.timeout_ms}};
    if (options_.tty) {
      const auto size = terminal_size(0);
      out.header["tty"] = {{"rows", size.rows}, {"cols", size.cols}};
      if (const char* term = std::getenv("TERM"); term != nullptr) add(std::string("TERM=") + term);
    }
    out.header["args"] = std::move(lengths);
    out.sink = shared_from_this();
    return out;
  }

  // The command's `end`, after all of its output was written. `sandbox` was started with request().
  asio::awaitable<Json> run(std::shared_ptr<session::Sandbox> sandbox) {
    sandbox_ = std::move(sandbox);
    std::optional<RawTerminal> raw;
    if (options_.tty) raw.emplace(0);
    if (options_.timeout_ms != 0) give_up_after(std::chrono::milliseconds(options_.timeout_ms) + kEndGrace);
    asio::co_spawn(io_, [self = shared_from_this()] { return self->relay_input(); }, asio::detached);
    asio::co_spawn(io_, [self = shared_from_this()] { return self->relay_signals(); }, asio::detached);
    while (true) {
      while (events_.empty()) co_await changed_.async_wait(kNoError);
      wire::Frame event = std::move(events_.front());
      events_.pop_front();
      if (event.ev() == "end") {
        ended_ = true;
        given_up_.cancel();
        co_return std::move(event.header);
      }
      if (event.ev() == "credit") {
        window_ += event.number("bytes", 0);
        input_changed_.cancel();
      } else if (event.ev() == "stdout" || event.ev() == "stderr") {
        while (!questions_.empty()) co_await asked_.async_wait(kNoError);
        Output& output = event.ev() == "stdout" ? out_ : err_;
        const int error = co_await output.write(event.payload);
        if (error != 0 && error != EPIPE && output_error_ == 0) {
          output_error_ = error;
          note(std::string(event.ev() == "stdout" ? "standard output: " : "standard error: ") + errno_text(error));
        }
        if (error != 0) cancel(SIGPIPE);
        sandbox_->follow(kId, wire::credit_request(wire::stream_charge(event.payload.size())), {});
      }
    }
  }

  // Asks at the terminal, one question after another. The answer is what is typed next, and not the command's.
  void ask(std::uint32_t number, const std::string& target) {
    if (number == session::Sandbox::kNoMoreQuestions) {
      questions_.clear();
      asked_.cancel();
    } else if (target.empty()) {
      // It has expired.
      const bool shown = !questions_.empty() && questions_.front().first == number;
      std::erase_if(questions_, [&](const auto& question) { return question.first == number; });
      if (questions_.empty()) asked_.cancel();
      if (shown && !questions_.empty()) prompt();
    } else if (input_ended_) {
      asio::co_spawn(io_, sandbox_->answer(number, false, false), asio::detached);
    } else {
      questions_.emplace_back(number, target);
      if (questions_.size() == 1) prompt();
    }
  }

  // The signal that had the command cancelled: a reader that went away, or one that we got.
  int cancelled_by() const { return cancelled_by_; }
  // Why output could not be written, other than that nobody reads it: an errno value, or 0.
  int output_error() const { return output_error_; }

 private:
  void prompt() {
    // What was typed before is no answer; and the command, which might say what looks like this, says nothing meanwhile.
    ::tcflush(0, TCIFLUSH);
    typed_.clear();
    const char* const line = options_.tty ? "\r\n" : "\n";
    std::fprintf(stderr, "%ssandy: the command wants to connect to %s. Allow it? Type once, always or deny, and Enter: ", line, questions_.front().second.c_str());
    input_changed_.cancel();
  }

  // Takes what is typed up to the end of a line, and the line for an answer.
  void take_answer(std::string_view keys) {
    for (const char key : keys) {
      if (key == '\x03' || key == '\x04') return answer("deny");  // ^C, ^D
      if (key == '\r' || key == '\n') {
        const std::string word = std::exchange(typed_, {});
        if (word == "once" || word == "always" || word == "deny") return answer(word);
        return prompt();
      }
      if (key == '\x7f' || key == '\b') {
        if (!typed_.empty()) typed_.pop_back();
      } else if (typed_.size() < 32) {
        typed_ += key;
      }
      if (options_.tty) std::fputs(key == '\x7f' || key == '\b' ? "\b \b" : std::string(1, key).c_str(), stderr);
    }
  }

  void answer(std::string_view word) {
    if (options_.tty) std::fputs("\r\n", stderr);
    const std::uint32_t number = questions_.front().first;
    questions_.pop_front();
    asio::co_spawn(io_, sandbox_->answer(number, word != "deny", word == "always"), asio::detached);
    if (questions_.empty()) {
      asked_.cancel();
    } else {
      prompt();
    }
  }

  void cancel(int signal) {
    if (cancelled_by_ != 0) return;
    cancelled_by_ = signal;
    sandbox_->follow(kId, wire::request("cancel"), {});
    give_up_after(kEndGrace);
  }

  // The agent ends commands, and is not trusted: what it doesn't end within `limit` is over, with the sandbox.
  void give_up_after(std::chrono::milliseconds limit) {
    const auto at = std::chrono::steady_clock::now() + std::min<std::chrono::milliseconds>(limit, std::chrono::hours(100'000));
    if (giving_up_ && given_up_.expiry() <= at) return;
    giving_up_ = true;
    given_up_.expires_at(at);
    asio::co_spawn(
        io_,
        [self = shared_from_this()]() -> asio::awaitable<void> {
          const auto [error] = co_await self->given_up_.async_wait(kNoError);
          if (error || self->ended_) co_return;
          wire::Frame end;
          end.header = {{"ev", "end"}, {"error", "no_sandbox"}, {"detail", "the sandbox did not end it when told to"}};
          self->out_.abandon();
          self->err_.abandon();
          self->events_.clear();
          self->on_event(std::move(end));
        },
        asio::detached);
  }

  asio::awaitable<void> relay_input() {
    // Regular files and devices are always readable, and can't be polled; pipes, terminals and sockets can.
    struct stat st{};
    const bool pollable = ::fstat(0, &st) == 0 && (S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode) || ::isatty(0) == 1);
    std::optional<asio::posix::stream_descriptor> input;
    if (pollable) input.emplace(io_, ::fcntl(0, F_DUPFD_CLOEXEC, 3));
    std::array<char, 65'536> buffer;
    while (!ended_) {
      while (window_ == 0 && !ended_ && questions_.empty()) co_await input_changed_.async_wait(kNoError);
      if (input) {
        const auto [error] = co_await input->async_wait(asio::posix::descriptor_base::wait_read, kNoError);
        if (error || ended_) co_return;
      }
      const ssize_t n = ::read(0, buffer.data(), questions_.empty() ? std::min(buffer.size(), window_) : buffer.size());
      if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
      if (!questions_.empty()) {
        if (n <= 0) answer("deny");
        take_answer({buffer.data(), static_cast<std::size_t>(std::max<ssize_t>(n, 0))});
        continue;
      }
      if (n <= 0) break;
      window_ -= std::min(window_, static_cast<std::size_t>(n));
      sandbox_->follow(kId, wire::request("data"), std::string(buffer.data(), static_cast<std::size_t>(n)));
      if (!input) co_await asio::post(io_, asio::use_awaitable);
    }
    input_ended_ = true;
    sandbox_->follow(kId, wire::request("eof"), {});
  }

  asio::awaitable<void> relay_signals() {
    asio::signal_set signals(io_, SIGINT, SIGTERM, SIGHUP);
    signals.add(SIGQUIT);
    signals.add(SIGWINCH);
    int interrupts = 0;
    while (!ended_) {
      const auto [error, number] = co_await signals.async_wait(kNoError);
      if (error || ended_) co_return;
      if (number == SIGWINCH) {
        if (options_.tty) {
          const auto size = terminal_size(0);
          Json resize = wire::request("resize");
          resize["rows"] = size.rows;
          resize["cols"] = size.cols;
          sandbox_->follow(kId, std::move(resize), {});
        }
        continue;
      }
      Json pass_on = wire::request("signal");
      pass_on["signal"] = number;
      sandbox_->follow(kId, std::move(pass_on), {});
      if (number == SIGHUP || (number == SIGINT && ++interrupts > 1)) cancel(number);
      if (number == SIGTERM) {
        asio::co_spawn(
            io_,
            [self = shared_from_this()]() -> asio::awaitable<void> {
              asio::steady_timer grace(self->io_, kTerminateGrace);
              co_await grace.async_wait(kNoError);
              if (!self->ended_) self->cancel(SIGTERM);
            },
            asio::detached);
      }
    }
  }

  asio::io_context& io_;
  const ForegroundOptions& options_;
  std::shared_ptr<session::Sandbox> sandbox_;
  static constexpr std::uint32_t kId = session::Sandbox::kFirstId;
  std::deque<wire::Frame> events_;
  std::deque<std::pair<std::uint32_t, std::string>> questions_;
  asio::steady_timer asked_{io_, asio::steady_timer::time_point::max()};  // until no question is open
  std::string typed_;
  bool input_ended_ = false;
  asio::steady_timer changed_;
  asio::steady_timer input_changed_{io_, asio::steady_timer::time_point::max()};
  asio::steady_timer given_up_;
  bool giving_up_ = false;
  std::size_t window_ = wire::kWindowBytes;
  Output out_, err_;
  bool ended_ = false;
  int cancelled_by_ = 0, output_error_ = 0;
};

// Where our own PATH has a program that the sandbox lacks; "" where it has none.
std::string place_on_host(const std::string& program) {
  if (program.find('/') != std::string::npos) return {};
  std::string_view path = std::getenv("PATH") == nullptr ? "" : std::getenv("PATH");
  while (!path.empty()) {
    const std::string_view directory = path.substr(0, path.find(':'));
    const std::string candidate = std::string(directory) + "/" + program;
    if (directory.starts_with('/') && ::access(candidate.c_str(), X_OK) == 0) return candidate;
    path.remove_prefix(std::min(directory.size() + 1, path.size()));
  }
  return {};
}

// What the network refused, in words for whoever ran the command.
void note_denials(const Json& end) {
  const auto denials = end.find("denials");
  if (denials == end.end()) return;
  for (const auto& denial : *denials) {
    note((denial.value("failed", false) ? "not reached: " : "blocked: ") + denial.value("target", "") + " (" + denial.value("reason", "") + ")");
  }
  if (const auto more = end.value("more_denials", std::uint64_t{0}); more > 0) note("blocked: " + std::to_string(more) + " more");
}

int status_of(const Json& end, const ForegroundOptions& options, const std::string& cwd, int cancelled_by) {
  const auto number = [&](const char* key) { return end.value(key, std::int64_t{0}); };
  if (cancelled_by == SIGPIPE) return 128 + SIGPIPE;
  if (end.value("wall_time", false)) {
    note("timed out: " + printable(end.value("detail", "")));
    return kTimedOut;
  }
  if (end.contains("error")) {
    note("the command was cut off: " + printable(end.value("detail", std::string(end.value("error", "")))));
    return kCouldNotStart;
  }
  const std::string reason = end.value("reason", "");
  for (const char* key : {"code", "signal", "errno"}) {
    if (end.contains(key) && !end[key].is_number_integer()) throw std::invalid_argument(key);
  }
  if (reason == "exited") return static_cast<int>(number("code") & 0xFF);
  if (reason == "timed_out") {
    note("timed out after " + std::to_string(options.timeout_ms) + " ms");
    return kTimedOut;
  }
  if (reason == "could_not_start") {
    const auto error = static_cast<int>(number("errno"));
    if (end.value("cwd", false)) {
      note("the working directory " + printable(cwd) + ": " + errno_text(error));
    } else if (error == ENOENT) {
      const std::string place = place_on_host(options.argv[0]);
      note(printable(options.argv[0]) + ": command not found in the sandbox" +
           (place.empty() ? "" : "; outside it is " + printable(place) + ", and --read shows what it needs of its directory"));
    } else {
      note(printable(options.argv[0]) + ": " + errno_text(error));
    }
    return static_cast<int>(number("code"));
  }
  if (reason == "out_of_memory") return 128 + SIGKILL;
  if (reason == "signalled") {
    const auto signal = static_cast<int>(number("signal"));
    if (signal == SIGSYS) note("killed for a system call that the seccomp policy doesn't allow (32-bit programs are not supported)");
    return 128 + (signal & 127);
  }
  if (reason != "cancelled") throw std::invalid_argument("reason");
  return 128 + (cancelled_by != 0 ? cancelled_by : SIGKILL);
}

}  // namespace

int run_in_foreground(const policy::SandboxPolicy& policy, const ForegroundOptions& options, const OutcomeFile& outcome) {
  ::signal(SIGPIPE, SIG_IGN);
  const auto could_not_start = [&](const Error& error) {
    print_error(error);
    outcome.write(error, kCouldNotStart);
    return kCouldNotStart;
  };
  session::AuditLog audit;
  if (!options.audit.empty()) {
    auto opened = session::AuditLog::open(options.audit);
    if (!opened) return could_not_start(opened.error());
    audit = std::move(*opened);
  }
  auto planned = session::plan_here(policy, {options.policy_file, options.audit});
  if (!planned) return could_not_start(planned.error());
  const std::string cwd = planned->plan.cwd;
  // Never destroyed: it is stopped with work in it, and the thread that removes directories gives back its hold on it at a time of its own.
  static asio::io_context& io = *new asio::io_context(1);
  int status = kCouldNotStart;
  asio::co_spawn(
      io,
      [&]() -> asio::awaitable<void> {
        auto foreground = std::make_shared<Foreground>(io, options);
        session::Sandbox::NetworkOptions network;
        network.audit = std::move(audit);
        if (options.ask) network.on_question = [foreground](std::uint32_t number, const std::string& target) { foreground->ask(number, target); };
        auto sandbox = co_await session::Sandbox::start(io.get_executor(), std::move(*planned), foreground->request(), std::move(network));
        if (!sandbox) {
          could_not_start(sandbox.error());
          co_await session::Network::shutdown();
          session::Limits::shutdown();
          co_return;
        }
        for (const auto& [host_port, port] : (*sandbox)->published()) note("port " + std::to_string(port) + " of the sandbox is 127.0.0.1:" + std::to_string(host_port));
        const Json end = co_await foreground->run(*sandbox);
        status = foreground->output_error() != 0 ? kCouldNotStart : status_of(end, options, cwd, foreground->cancelled_by());
        note_denials(end);
        for (const auto& text : end.value("limit_notes", Json::array())) note(text.get<std::string>());
        // Both at a time: the sandbox leaves its network first.
        co_await ((*sandbox)->close("the command has ended") && session::Network::shutdown());
        session::Limits::shutdown();
        outcome.write(end, status, (*sandbox)->plan().degraded);
      },
      [&](std::exception_ptr failure) {
        // Values of another type than the protocol's: nlohmann::json throws.
        if (failure) print_error({"the sandbox", "its agent broke the protocol", ""});
        io.stop();
      });
  io.run();
  return status;
}

}  // namespace sandy::cli
