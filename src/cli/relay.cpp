#include "cli/relay.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include "cli/verbs.h"

namespace sandy::cli {
namespace {

using wire::Json;

constexpr auto kNoError = asio::as_tuple(asio::use_awaitable);
constexpr auto kTerminateGrace = std::chrono::seconds(5);  // from a passed-on SIGTERM to the kill
constexpr auto kEndGrace = std::chrono::seconds(10);       // from a kill that was asked for to giving up on the agent
constexpr char kDetachFirst = '\x10', kDetachSecond = '\x11';  // Ctrl-P, Ctrl-Q
constexpr auto kNever = asio::steady_timer::time_point::max();

// A terminal that keeps its lines and its Ctrl-C, and yet gives out Ctrl-Q, with what was typed before it, at once.
void end_lines_at_detach(termios* modes) {
  modes->c_cc[VEOL] = kDetachSecond;
  modes->c_iflag &= ~static_cast<tcflag_t>(IXON);  // in which Ctrl-Q is no key
}

}  // namespace

Relay::Relay(asio::io_context& io, const RelayOptions& options)
    : io_(io), options_(options), asked_(io, kNever), tty_(options.tty), changed_(io, kNever), input_changed_(io, kNever), given_up_(io), out_(io, 1), err_(io, 2) {}

void Relay::on_event(wire::Frame event) {
  if (event.ev() == "end") {
    command_ended_ = true;
    withdraw("the command ended before an answer");
  }
  events_.push_back(std::move(event));
  changed_.cancel();
}

wire::Json Relay::request_header() const {
  Json lengths = Json::array();
  for (const auto& word : options_.argv) lengths.push_back(word.size());
  lengths.push_back(options_.cwd.size());
  Json out{{"op", "exec"}, {"argc", options_.argv.size()}, {"shell", false}, {"merge", false}, {"stream", true}, {"timeout_ms", options_.timeout_ms}};
  if (options_.input || tty_) out["stdin"] = "pipe";
  for (const auto& variable : options_.env) lengths.push_back(variable.size());
  if (tty_) {
    const auto size = terminal_size(0);
    out["tty"] = {{"rows", size.rows}, {"cols", size.cols}};
    if (const char* term = std::getenv("TERM"); term != nullptr) lengths.push_back(std::string("TERM=").size() + std::string_view(term).size());
  }
  out["args"] = std::move(lengths);
  return out;
}

std::string Relay::request_payload() const {
  std::string out;
  for (const auto& word : options_.argv) out += word;
  out += options_.cwd;
  for (const auto& variable : options_.env) out += variable;
  if (const char* term = std::getenv("TERM"); tty_ && term != nullptr) out.append("TERM=").append(term);
  return out;
}

// Of a process that was there before: only now is known whether it has a terminal.
void Relay::take_start(const wire::Frame& event) {
  if (!options_.detachable || ::isatty(0) != 1) return;
  note("Ctrl-P Ctrl-Q leaves it alone, Ctrl-C interrupts it");
  if (event.flag("tty", false)) {
    tty_ = true;
    send_size();
  }
  terminal_.emplace(0, tty_ ? ::cfmakeraw : end_lines_at_detach);
}

void Relay::send_size() {
  const auto size = terminal_size(0);
  Json resize = wire::request("resize");
  resize["rows"] = size.rows;
  resize["cols"] = size.cols;
  link_->follow(std::move(resize), {});
}

asio::awaitable<wire::Json> Relay::run(std::shared_ptr<CommandLink> link) {
  link_ = std::move(link);
  if (tty_) terminal_.emplace(0, ::cfmakeraw);
  if (options_.timeout_ms != 0) give_up_after(std::chrono::milliseconds(options_.timeout_ms) + kEndGrace);
  const bool keys = options_.detachable && ::isatty(0) == 1;
  if (options_.input || tty_ || keys) asio::co_spawn(io_, [self = shared_from_this()] { return self->relay_input(); }, asio::detached);
  asio::co_spawn(io_, [self = shared_from_this()] { return self->relay_signals(); }, asio::detached);
  while (true) {
    while (events_.empty()) co_await changed_.async_wait(kNoError);
    wire::Frame event = std::move(events_.front());
    events_.pop_front();
    if (event.ev() == "end") {
      ended_ = true;
      given_up_.cancel();
      terminal_.reset();
      co_return std::move(event.header);
    }
    if (event.ev() == "started") {
      take_start(event);
    } else if (event.ev() == "lost") {
      note(std::to_string(event.number("bytes", 0)) + " bytes of output were not kept");
    } else if (event.ev() == "credit") {
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
      link_->follow(wire::credit_request(wire::stream_charge(event.payload.size())), {});
    }
  }
}

void Relay::ask(std::uint32_t number, const std::string& target) {
  if (number == session::Sandbox::kNoMoreQuestions) {
    withdraw("the sandbox has ended");
  } else if (target.empty()) {
    // It has expired.
    const bool shown = !questions_.empty() && questions_.front().first == number;
    const auto found = std::ranges::find(questions_, number, &std::pair<std::uint32_t, std::string>::first);
    if (found == questions_.end()) return;
    if (shown) std::fputs(line_end(), stderr);
    note("not allowed: " + found->second + " (there was no answer while it waited)" + (tty_ ? "\r" : ""));
    questions_.erase(found);
    if (questions_.empty()) asked_.cancel();
    if (shown && !questions_.empty()) prompt();
  } else if (input_ended_ || command_ended_) {
    link_->answer(number, false, false);
  } else {
    questions_.emplace_back(number, target);
    if (questions_.size() == 1) prompt();
  }
}

void Relay::prompt() {
  // What was typed before is no answer; and the command, which might say what looks like this, says nothing meanwhile.
  ::tcflush(0, TCIFLUSH);
  typed_.clear();
  std::fprintf(stderr, "%ssandy: the command wants to connect to %s. Allow it? Type once, always or deny, and Enter: ", line_end(), questions_.front().second.c_str());
  input_changed_.cancel();
}

// Takes what is typed up to the end of a line, and the line for an answer.
void Relay::take_answer(std::string_view keys) {
  for (const char key : keys) {
    if (key == '\x03' || key == '\x04') return answer("deny");  // ^C, ^D
    if (key == '\r' || key == '\n') {
      const std::string word = std::exchange(typed_, {});
      for (const std::string_view known : {"once", "always", "deny"}) {
        if (word == known || word == known.substr(0, 1)) return answer(known);
      }
      std::fprintf(stderr, "%ssandy: %s is none of once, always and deny", tty_ ? "\r\n" : "", printable(word.empty() ? "an empty line" : '"' + word + '"').c_str());
      return prompt();
    }
    if (key == '\x7f' || key == '\b') {
      if (!typed_.empty()) typed_.pop_back();
    } else if (typed_.size() < 32) {
      typed_ += key;
    }
    if (tty_) std::fputs(key == '\x7f' || key == '\b' ? "\b \b" : std::string(1, key).c_str(), stderr);
  }
}

void Relay::answer(std::string_view word) {
  if (tty_) std::fputs(line_end(), stderr);
  const std::uint32_t number = questions_.front().first;
  questions_.pop_front();
  link_->answer(number, word != "deny", word == "always");
  if (questions_.empty()) {
    asked_.cancel();
  } else {
    prompt();
  }
}

// Refuses all that is asked.
void Relay::withdraw(const std::string& why) {
  if (questions_.empty()) return;
  std::fputs(line_end(), stderr);
  for (const auto& [number, target] : std::exchange(questions_, {})) {
    note("not allowed: " + target + " (" + why + ")" + (tty_ ? "\r" : ""));
    if (link_) link_->answer(number, false, false);
  }
  asked_.cancel();
}

void Relay::cancel(int signal) {
  if (cancelled_by_ != 0) return;
  cancelled_by_ = signal;
  // A process that goes on without us is not ended for our sake.
  if (options_.detachable) return leave();
  link_->follow(wire::request("cancel"), {});
  give_up_after(kEndGrace);
}

// The agent ends commands, and is not trusted: what it doesn't end within `limit` is over, with the sandbox.
void Relay::give_up_after(std::chrono::milliseconds limit) {
  const auto at = std::chrono::steady_clock::now() + std::min<std::chrono::milliseconds>(limit, std::chrono::hours(100'000));
  if (giving_up_ && given_up_.expiry() <= at) return;
  giving_up_ = true;
  given_up_.expires_at(at);
  asio::co_spawn(io_, [self = shared_from_this()] { return self->give_up(); }, asio::detached);
}

asio::awaitable<void> Relay::give_up() {
  auto self = shared_from_this();
  const auto [error] = co_await given_up_.async_wait(kNoError);
  if (error || ended_) co_return;
  Json end{{"ev", "end"}, {"error", "no_sandbox"}, {"detail", "the sandbox did not end it when told to"}};
  end_here(std::move(end));
}

void Relay::leave() {
  detached_ = true;
  end_here({{"ev", "end"}});
}

void Relay::end_here(Json end) {
  wire::Frame frame;
  frame.header = std::move(end);
  out_.abandon();
  err_.abandon();
  events_.clear();
  on_event(std::move(frame));
}

// Whether the two keys were among them: then nothing behind them counts. The first alone waits for the next key.
bool Relay::take_detach_keys(std::string& keys) {
  std::string out;
  for (const char key : keys) {
    if (std::exchange(detach_begun_, false)) {
      if (key == kDetachSecond) return true;
      out += kDetachFirst;
    }
    if (key == kDetachFirst) {
      detach_begun_ = true;
    } else {
      out += key;
    }
  }
  keys = std::move(out);
  return false;
}

asio::awaitable<void> Relay::relay_input() {
  auto self = shared_from_this();
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
    std::string keys(buffer.data(), static_cast<std::size_t>(n));
    if (options_.detachable && ::isatty(0) == 1 && take_detach_keys(keys)) {
      leave();
      co_return;
    }
    if (!options_.input && !tty_) continue;  // but for those keys
    window_ -= std::min(window_, keys.size());
    if (!keys.empty()) link_->follow(wire::request("data"), std::move(keys));
    if (!input) co_await asio::post(io_, asio::use_awaitable);
  }
  input_ended_ = true;
  if (options_.input || tty_) link_->follow(wire::request("eof"), {});
}

asio::awaitable<void> Relay::cancel_later() {
  auto self = shared_from_this();
  asio::steady_timer grace(io_, kTerminateGrace);
  co_await grace.async_wait(kNoError);
  if (!ended_) cancel(SIGTERM);
}

asio::awaitable<void> Relay::relay_signals() {
  auto self = shared_from_this();
  asio::signal_set signals(io_, SIGINT, SIGTERM, SIGHUP);
  signals.add(SIGQUIT);
  signals.add(SIGWINCH);
  int interrupts = 0;
  while (!ended_) {
    const auto [error, number] = co_await signals.async_wait(kNoError);
    if (error || ended_) co_return;
    if (number == SIGWINCH) {
      if (tty_) send_size();
      continue;
    }
    if (options_.detachable && number != SIGINT && number != SIGQUIT) {
      cancel(number);
      co_return;
    }
    withdraw("a signal came before an answer");
    Json pass_on = wire::request("signal");
    pass_on["signal"] = number;
    link_->follow(std::move(pass_on), {});
    if (number == SIGHUP || (number == SIGINT && ++interrupts > 1)) cancel(number);
    if (number == SIGTERM) asio::co_spawn(io_, [self = shared_from_this()] { return self->cancel_later(); }, asio::detached);
  }
}

}  // namespace sandy::cli
