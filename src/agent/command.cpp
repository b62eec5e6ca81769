#include "agent/command.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/wait.h>

#include <cerrno>

#include "agent/agent.h"
#include "agent/command_image.h"
#include "agent/process_tree.h"
#include "agent/pty.h"

namespace sandy::agent {
namespace {

using namespace std::chrono_literals;
using Frames = std::vector<std::pair<wire::Json, std::string>>;

constexpr auto kNoError = asio::as_tuple(asio::use_awaitable);
constexpr std::size_t kDefaultKeep = 1'048'576, kMaxKeep = 67'108'864;
constexpr std::size_t kReadBytes = 65'536, kHeavyBytes = 1'048'576;
constexpr auto kKillGrace = 5s;     // after the kill: for a process that the kernel doesn't let die yet
constexpr auto kKillAgain = 5ms;
constexpr auto kTerminalQuiet = 20ms;  // a PTY's last output arrives after its writer's end
constexpr std::size_t kInputPiece = 65'536;

std::uint64_t milliseconds(const timeval& time) {
  return static_cast<std::uint64_t>(time.tv_sec) * 1000 + static_cast<std::uint64_t>(time.tv_usec) / 1000;
}

// `bytes` as events of at most one chunk each.
void add_events(Frames& frames, std::uint32_t id, const std::string& event, std::string_view bytes, bool tail) {
  while (!bytes.empty()) {
    const auto piece = bytes.substr(0, wire::kChunkBytes);
    wire::Json header{{"id", id}, {"ev", event}};
    if (tail) header["tail"] = true;
    frames.emplace_back(std::move(header), std::string(piece));
    bytes.remove_prefix(piece.size());
  }
}

}  // namespace

Command::Command(Agent& agent, std::uint32_t id)
    : agent_(agent),
      id_(id),
      started_(std::chrono::steady_clock::now()),
      changed_(agent.io(), asio::steady_timer::time_point::max()),
      window_(agent.io().get_executor()) {}

bool Command::open_streams(const wire::Frame& frame, CommandImage& image) {
  const auto executor = agent_.io().get_executor();
  const std::size_t keep = std::min<std::size_t>(frame.number("keep", kDefaultKeep), kMaxKeep);
  auto add_output = [&](int index, const char* name, UniqueFd fd) {
    ::fcntl(fd.get(), F_SETFL, O_NONBLOCK);
    outputs_[index] = std::make_shared<Output>(executor, std::move(fd), name, stream_ ? 0 : keep);
  };
  if (const auto tty = frame.header.find("tty"); tty != frame.header.end() && tty->is_object()) {
    auto size = [&](const char* key) {
      const auto number = tty->find(key);
      return static_cast<unsigned short>(number != tty->end() && number->is_number_unsigned() ? number->get<std::uint64_t>() : 0);
    };
    auto pty = open_pty(size("rows"), size("cols"));
    if (!pty) return false;
    UniqueFd input(::fcntl(pty->master.get(), F_DUPFD_CLOEXEC, 3));
    image.out.reset(::fcntl(pty->slave.get(), F_DUPFD_CLOEXEC, 3));
    image.err.reset(::fcntl(pty->slave.get(), F_DUPFD_CLOEXEC, 3));
    image.in = std::move(pty->slave);
    image.controlling_tty = tty_ = true;
    if (!input || !image.out || !image.err) return false;
    add_output(0, "stdout", std::move(pty->master));
    input_.emplace(executor, input.release());
    return true;
  }
  for (int index = 0; index < (frame.flag("merge", true) ? 1 : 2); ++index) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return false;
    (index == 0 ? image.out : image.err).reset(ends[1]);
    add_output(index, index == 0 ? "stdout" : "stderr", UniqueFd(ends[0]));
  }
  if (!image.err) image.err.reset(::fcntl(image.out.get(), F_DUPFD_CLOEXEC, 3));
  if (frame.word("stdin") == "pipe") {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return false;
    image.in.reset(ends[0]);
    ::fcntl(ends[1], F_SETFL, O_NONBLOCK);
    input_.emplace(executor, ends[1]);
  } else {
    image.in.reset(::fcntl(agent_.null_fd(), F_DUPFD_CLOEXEC, 3));
  }
  return image.err && image.in;
}

void Command::start(const wire::Frame& frame) {
  stream_ = frame.flag("stream", false);
  auto image = command_image(frame, agent_.configuration());
  if (!image) return could_not_start(image.error());
  if (!open_streams(frame, *image)) return could_not_start(errno);
  image->tells_start = stream_;
  const auto timeout = frame.number("timeout_ms", 0);
  if (agent_.configuration().command_groups) {
    starting_ = true;
    pass_streams(frame);
    // (A variable: g++ 12 destroys what is in a co_spawn's own expression twice.)
    auto start = start_in_group(std::move(*image), timeout);
    asio::co_spawn(agent_.io(), std::move(start), asio::detached);
    return;
  }
  int error_number = 0;
  supervisor_ = agent_.start_command(std::move(*image), shared_from_this(), error_number);
  if (supervisor_ == nullptr) return could_not_start(error_number);
  pass_streams(frame);
  asio::co_spawn(agent_.io(), [self = shared_from_this(), timeout] { return self->run(timeout); }, asio::detached);
}

void Command::pass_streams(const wire::Frame& frame) {
  for (const auto& output : outputs_) {
    if (output) asio::co_spawn(agent_.io(), [self = shared_from_this(), output] { return self->read_output(output); }, asio::detached);
  }
  if (!input_) return;
  pending_ = frame.cut()->data;
  input_eof_ = frame.flag("eof", false);
  asio::co_spawn(agent_.io(), [self = shared_from_this()] { return self->write_input(); }, asio::detached);
}

asio::awaitable<void> Command::start_in_group(CommandImage image, std::uint64_t timeout_ms) {
  auto self = shared_from_this();
  int error_number = 0;
  supervisor_ = co_await agent_.start_in_group(id_, std::move(image), self, group_, error_number);
  starting_ = false;
  if (supervisor_ == nullptr) {
    for (const auto& output : outputs_) {
      if (output) output->pipe.cancel();
    }
    ended_ = true;
    if (error_number != 0) {
      could_not_start(error_number);
      co_return;
    }
    // Cancelled before it began.
    status_ = SIGKILL;
  }
  co_await run(timeout_ms);
}

void Command::kill_all() {
  if (supervisor_ != nullptr) kill_descendants(supervisor_->pid());
  // `sandy` kills the group at once, and with it what hides from a walk over the tree.
  if (group_ != 0) agent_.channel().post(wire::event(id_, "kill"));
}

void Command::could_not_start(int error_number, bool cwd) {
  wire::Json fields{{"reason", "could_not_start"}, {"errno", error_number}, {"code", error_number == ENOENT && !cwd ? 127 : 126}};
  if (cwd) fields["cwd"] = true;
  fields.update(result());
  window_.close();
  agent_.end(id_, std::move(fields));
}

void Command::on_frame(wire::Frame frame) {
  const auto op = frame.op();
  if (op == "data") {
    if (input_) {
      pending_ += frame.payload;
      changed_.cancel();
      if (!writing_) asio::co_spawn(agent_.io(), [self = shared_from_this()] { return self->write_input(); }, asio::detached);
    }
  } else if (op == "eof") {
    input_eof_ = true;
    if (input_ && !writing_) asio::co_spawn(agent_.io(), [self = shared_from_this()] { return self->write_input(); }, asio::detached);
  } else if (op == "drain") {
    begin_drain();
  } else if (op == "credit") {
    window_.give(frame.number("bytes", 0));
  } else if (op == "cancel") {
    interrupt("cancelled");
  } else if (op == "signal") {
    // setsid(2) made the command the leader of a process group of its own.
    const auto number = static_cast<int>(frame.number("signal", 0));
    if (supervisor_ != nullptr && supervisor_->command_pid() > 0 && number > 0 && number < NSIG) ::kill(-supervisor_->command_pid(), number);
  } else if (op == "resize" && tty_ && outputs_[0]) {
    resize_pty(outputs_[0]->pipe.native_handle(), static_cast<unsigned short>(frame.number("rows", 0)),
               static_cast<unsigned short>(frame.number("cols", 0)));
  }
}

void Command::note_memory_kill(const std::string& name) {
  ++memory_kills_;
  killed_ = name;
}

void Command::interrupt(std::string reason) {
  if ((supervisor_ == nullptr && !starting_) || ended_ || !interruption_.empty()) return;
  interruption_ = std::move(reason);
  // Output that nobody will take must not keep the end waiting.
  if (interruption_ == "cancelled") window_.close();
  if (starting_) return agent_.spare_changed();
  kill_all();
  changed_.cancel();
}

void Command::on_executed(const Supervisor& supervisor) {
  if (std::exchange(told_start_, true)) return;
  wire::Json started = wire::event(id_, "started");
  started["pid"] = static_cast<std::uint64_t>(supervisor.command_pid());
  agent_.channel().post(started);
}

void Command::on_ended(const Supervisor& supervisor) {
  if (supervisor.executed()) on_executed(supervisor);
  ended_ = true;
  status_ = supervisor.status();
  exec_errno_ = supervisor.exec_errno();
  chdir_failed_ = supervisor.chdir_failed();
  usage_ = supervisor.usage();
  if (killed_.empty()) killed_ = supervisor.killed();
  supervisor_ = nullptr;
  changed_.cancel();
  for (const auto& output : outputs_) {
    if (output) output->pipe.cancel();
  }
}

// Sends it as events.
asio::awaitable<bool> Command::deliver(Output& output, std::string bytes) {
  std::size_t sent = 0;
  while (sent < bytes.size()) {
    const std::size_t n = co_await window_.take(bytes.size() - sent);
    if (n == 0) co_return false;
    std::string piece = n == bytes.size() ? std::move(bytes) : bytes.substr(sent, n);
    sent += n;
    if (!co_await agent_.channel().send(wire::event(id_, output.name), std::move(piece))) co_return false;
  }
  co_return true;
}

// As read(2): into what is kept, or `streamed`.
ssize_t Command::read_some(Output& output, std::size_t most, std::string& streamed) {
  const int fd = output.pipe.native_handle();
  ssize_t n = -1;
  if (stream_ && !output.done) {
    streamed.resize_and_overwrite(std::min(most, wire::kChunkBytes), [&](char* data, std::size_t size) {
      n = ::read(fd, data, size);
      return n > 0 ? static_cast<std::size_t>(n) : 0;
    });
    // Events that wait for a reader hold what they have room for, not what they are charged for.
    if (streamed.size() < streamed.capacity() / 2) streamed.shrink_to_fit();
    return n;
  }
  std::string& buffer = agent_.scratch();
  if (buffer.size() < most) buffer.resize(most);
  n = ::read(fd, buffer.data(), most);
  if (n > 0 && !output.done) output.kept.add(std::string_view(buffer.data(), static_cast<std::size_t>(n)));
  return n;
}

void Command::begin_drain() {
  Drain drain{};
  for (int index = 0; index < 2; ++index) {
    const auto& output = outputs_[index];
    int waiting = 0;
    if (output && !output->done) ::ioctl(output->pipe.native_handle(), FIONREAD, &waiting);
    drain.left[index] = output && !output->done ? static_cast<std::size_t>(waiting) + output->on_its_way : 0;
  }
  drains_.push_back(drain);
  if (outputs_[0]) note_drained(*outputs_[0], 0);
}

void Command::note_drained(const Output& output, std::size_t bytes) {
  for (auto& drain : drains_) {
    for (int index = 0; index < 2; ++index) {
      if (outputs_[index].get() == &output) drain.left[index] -= std::min(drain.left[index], output.done ? drain.left[index] : bytes);
    }
  }
  while (!drains_.empty() && drains_.front().left[0] == 0 && drains_.front().left[1] == 0) {
    drains_.erase(drains_.begin());
    agent_.channel().post(wire::event(id_, "drained"));
  }
}

asio::awaitable<void> Command::read_output(std::shared_ptr<Output> output) {
  const int fd = output->pipe.native_handle();
  std::size_t in_a_row = 0;
  bool taken = true;  // somebody still wants what is read
  while (true) {
    if (ended_ && !output->left) {
      // What others write into the pipe after the command's end is not waited for.
      int waiting = 0;
      if (!tty_) ::ioctl(fd, FIONREAD, &waiting);
      output->left = tty_ ? std::size_t(-1) : static_cast<std::size_t>(waiting);
    }
    if (!output->done && output->left == 0U) {
      output->done = true;
      note_drained(*output, 0);
      changed_.cancel();
    }
    const std::size_t piece = output->heavy ? kHeavyBytes : kReadBytes;
    std::string streamed;
    const ssize_t n = read_some(*output, std::min(piece, output->done ? piece : output->left.value_or(piece)), streamed);
    if (n > 0) {
      const auto got = static_cast<std::size_t>(n);
      if (!output->done) {
        if (output->left && !tty_) *output->left -= got;
        if (stream_ && taken) {
          output->on_its_way = got;
          taken = co_await deliver(*output, std::move(streamed));
          output->on_its_way = 0;
        }
        note_drained(*output, got);
      }
      if (got == kReadBytes && !output->heavy) {
        output->heavy = true;
        ::fcntl(fd, F_SETPIPE_SZ, static_cast<int>(kHeavyBytes));  // a hint: a machine's limits may refuse it
      }
      in_a_row += got;
      if (in_a_row > 2 * kHeavyBytes) {
        in_a_row = 0;
        co_await asio::post(agent_.io(), asio::use_awaitable);  // others have their turn
      }
      continue;
    }
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      in_a_row = 0;
      if (tty_ && output->left && !output->done) {
        asio::steady_timer quiet(agent_.io(), kTerminalQuiet);
        co_await quiet.async_wait(kNoError);
        int waiting = 0;
        ::ioctl(fd, FIONREAD, &waiting);
        output->left = static_cast<std::size_t>(waiting) == 0 ? 0 : std::size_t(-1);
        continue;
      }
      if (ended_ && !output->left) continue;
      co_await output->pipe.async_wait(asio::posix::descriptor_base::wait_read, kNoError);
      continue;
    }
    break;  // end of file, or EIO: the PTY's last slave was closed
  }
  output->done = true;
  note_drained(*output, 0);
  boost::system::error_code ignored;
  output->pipe.close(ignored);
  changed_.cancel();
}

asio::awaitable<void> Command::write_input() {
  writing_ = true;
  auto self = shared_from_this();
  bool broken = false;
  while (input_ && !pending_.empty()) {
    std::string piece = std::move(pending_);
    pending_.clear();
    std::string_view rest = piece;
    while (!rest.empty() && !broken) {
      const ssize_t n = ::write(input_->native_handle(), rest.data(), std::min(rest.size(), kInputPiece));
      if (n > 0) {
        rest.remove_prefix(static_cast<std::size_t>(n));
        continue;
      }
      if (errno == EINTR) continue;
      if (errno == EAGAIN || errno == EWOULDBLOCK) {
        const auto [error] = co_await input_->async_wait(asio::posix::descriptor_base::wait_write, kNoError);
        broken = broken || error || !input_;
        continue;
      }
      broken = true;  // EPIPE: nobody reads; what comes is dropped
    }
    if (!ended_) agent_.channel().post(wire::credit_event(id_, piece.size()));
  }
  if (input_eof_ && input_) {
    // A terminal has no end of file but the character for it (VEOF, termios(3)).
    if (tty_) (void)!::write(input_->native_handle(), "\x04", 1);
    boost::system::error_code ignored;
    input_->close(ignored);
    input_.reset();
  }
  writing_ = false;
}

asio::awaitable<void> Command::run(std::uint64_t timeout_ms) {
  auto self = shared_from_this();
  const auto deadline = started_ + std::chrono::milliseconds(std::min<std::uint64_t>(timeout_ms, 1'000'000'000'000));
  auto give_up = std::chrono::steady_clock::time_point::max();
  auto finished = [&] {
    return ended_ && (!outputs_[0] || outputs_[0]->done) && (!outputs_[1] || outputs_[1]->done);
  };
  while (!finished()) {
    const auto now = std::chrono::steady_clock::now();
    if (now >= give_up) break;
    if (timeout_ms != 0 && now >= deadline && interruption_.empty() && !ended_) interrupt("timed_out");
    if (!interruption_.empty() && give_up == std::chrono::steady_clock::time_point::max()) give_up = now + kKillGrace;
    auto until = give_up;
    if (!interruption_.empty() && !ended_) {
      // Again and again: at the first time its supervisor may not have started it yet.
      kill_descendants(supervisor_->pid());
      until = std::min(until, now + kKillAgain);
    }
    if (timeout_ms != 0 && interruption_.empty() && !ended_) until = std::min(until, deadline);
    changed_.expires_at(until);
    co_await changed_.async_wait(kNoError);
  }
  if (exec_errno_ != 0) {
    window_.close();
    could_not_start(exec_errno_, chdir_failed_);
    co_return;
  }
  // Killed before its program was run: it has started all the same, and ended so.
  if (stream_ && !std::exchange(told_start_, true)) agent_.channel().post(wire::event(id_, "started"));
  Frames frames;
  wire::Json fields = result();
  if (!killed_.empty()) fields["killed"] = printable(killed_);
  if (memory_kills_ > 0) fields["memory_kills"] = memory_kills_;
  wire::Json omitted = wire::Json::object();
  std::size_t unsent = 0;
  if (!stream_) {
    for (const auto& output : outputs_) {
      if (!output) continue;
      auto kept = output->kept.take();
      omitted[output->name] = kept.omitted;
      add_events(frames, id_, output->name, kept.head, false);
      add_events(frames, id_, output->name, kept.tail, true);
    }
    for (const auto& [header, payload] : frames) unsent += wire::stream_charge(payload.size());
  }
  fields["omitted"] = std::move(omitted);
  if (!interruption_.empty()) {
    fields["reason"] = interruption_;
  } else if (WIFSIGNALED(status_)) {
    fields["reason"] = "signalled";
    fields["signal"] = WTERMSIG(status_);
    fields["core"] = WCOREDUMP(status_) != 0;
  } else {
    fields["reason"] = "exited";
    fields["code"] = WEXITSTATUS(status_);
  }
  if (unsent > wire::kWindowBytes) {
    for (auto& [header, payload] : frames) {
      for (std::string_view rest = payload; !rest.empty();) {
        const std::size_t n = co_await window_.take(rest.size());
        if (n == 0 || !co_await agent_.channel().send(header, std::string(rest.substr(0, n)))) break;
        rest.remove_prefix(n);
      }
    }
    frames.clear();
  }
  if (input_) {
    boost::system::error_code ignored;
    input_->close(ignored);
    input_.reset();
  }
  agent_.end(id_, std::move(fields), std::move(frames));
}

wire::Json Command::result() const {
  const auto wall = std::chrono::steady_clock::now() - started_;
  return {{"wall_ms", std::chrono::duration_cast<std::chrono::milliseconds>(wall).count()},
          {"user_ms", milliseconds(usage_.ru_utime)},
          {"system_ms", milliseconds(usage_.ru_stime)},
          {"max_rss_kib", usage_.ru_maxrss}};
}

}  // namespace sandy::agent
