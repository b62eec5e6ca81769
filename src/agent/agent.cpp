#include "agent/agent.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <utility>

#include "agent/command.h"
#include "agent/file_job.h"
#include "agent/memory_watch.h"
#include "agent/process_tree.h"

namespace sandy::agent {
namespace {

constexpr auto kNoError = asio::as_tuple(asio::use_awaitable);

int own_oom_score_adj() {
  char text[16] = {};
  const UniqueFd fd(::open("/proc/self/oom_score_adj", O_RDONLY | O_CLOEXEC));
  return fd && ::read(fd.get(), text, sizeof text - 1) > 0 ? std::atoi(text) : 0;
}

int child_signals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGCHLD);
  return ::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

}  // namespace

Agent::Agent(asio::io_context& io, UniqueFd socket)
    : io_(io),
      channel_(wire::Channel::make(io.get_executor(), std::move(socket), wire::kMaxRequestPayload)),
      wake_(io, ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      children_(io, child_signals()),
      null_(::open("/dev/null", O_RDWR | O_CLOEXEC)),
      quiet_(std::make_shared<wire::Quiet>(io.get_executor())),
      spare_changed_(io, asio::steady_timer::time_point::max()),
      memory_timer_(io, asio::steady_timer::time_point::max()) {}

asio::thread_pool& Agent::file_pool() {
  if (!file_pool_) file_pool_ = std::make_unique<asio::thread_pool>(2);
  return *file_pool_;
}

asio::awaitable<void> Agent::serve() {
  auto first = co_await channel_->read();
  if (!first || !configure(*first)) co_return;
  asio::co_spawn(io_, watch_ends(), asio::detached);
  asio::co_spawn(io_, watch_children(), asio::detached);
  while (true) {
    auto frame = co_await channel_->read();
    if (!frame) co_return;
    dispatch(std::move(*frame));
  }
}

bool Agent::configure(const wire::Frame& frame) {
  auto configuration = wire::parse_configuration(frame);
  if (!configuration) {
    channel_->post({{"id", frame.id}, {"ev", "end"}, {"error", "configure"}, {"detail", configuration.error().text()}});
    return false;
  }
  configuration_ = std::move(*configuration);
  if (configuration_.workspace_names) {
    names_ = std::make_unique<WorkspaceNames>(
        "/", configuration_.workspace, std::set<std::string, std::less<>>(configuration_.root_names.begin(), configuration_.root_names.end()));
    if (names_->descriptor() >= 0) {
      asio::co_spawn(
          io_,
          [this]() -> asio::awaitable<void> {
            asio::posix::stream_descriptor changes(io_, ::fcntl(names_->descriptor(), F_DUPFD_CLOEXEC, 3));
            while (true) {
              const auto [error] = co_await changes.async_wait(asio::posix::descriptor_base::wait_read, kNoError);
              if (error) co_return;
              names_->sync(false);
            }
          },
          asio::detached);
    }
  }
  channel_->post({{"id", frame.id}, {"ev", "end"}, {"version", wire::kProtocolVersion}});
  if (configuration_.watched_memory != 0) asio::co_spawn(io_, watch_memory(), asio::detached);
  if (configuration_.command_groups) {
    oom_score_adj_ = std::to_string(std::min(1'000, own_oom_score_adj() + 500));
    make_spare();
  }
  return true;
}

void Agent::dispatch(wire::Frame frame) {
  quiet_->note();
  const std::uint32_t id = frame.id;
  if (const auto open = open_.find(id); open != open_.end()) {
    const auto request = open->second;
    return request->on_frame(std::move(frame));
  }
  const std::string_view op = frame.op();
  if (op == "placed") {
    on_placed(frame);
  } else if (op == "exec") {
    sync_names();
    auto command = std::make_shared<Command>(*this, id);
    open_[id] = command;
    command->start(frame);
  } else if (is_file_operation(op)) {
    auto job = std::make_shared<FileJob>(*this, std::move(frame));
    open_[id] = job;
    job->start();
  } else if (op != "data" && op != "eof" && op != "credit" && op != "cancel" && op != "signal" && op != "resize" && op != "drain") {
    channel_->post({{"id", id}, {"ev", "end"}, {"error", "unknown_op"}});
  }
}

void Agent::sync_names() {
  if (!names_) return;
  // A command that runs may still write to what would be copied away.
  bool at_rest = true;
  for (const auto& [pid, entry] : supervised_) at_rest = at_rest && (!entry.owner || entry.supervisor->ended());
  names_->sync(at_rest);
}

std::string Agent::locate(const std::string& path) const { return names_ ? names_->locate(path) : path; }

void Agent::end(std::uint32_t id, wire::Json fields, std::vector<std::pair<wire::Json, std::string>> frames) {
  quiet_->note();
  sync_names();
  open_.erase(id);
  fields["id"] = id;
  fields["ev"] = "end";
  frames.emplace_back(std::move(fields), std::string());
  channel_->post_all(std::move(frames));
}

Supervisor* Agent::start_command(CommandImage image, std::shared_ptr<Command> owner, int& error_number) {
  auto supervisor = Supervisor::start(std::move(image), wake_.native_handle(), error_number);
  if (!supervisor) return nullptr;
  memory_timer_.cancel();
  Supervisor* started = supervisor.get();
  supervised_[started->pid()] = {std::move(supervisor), std::move(owner)};
  return started;
}

void Agent::make_spare() {
  int error_number = 0;
  auto supervisor = Supervisor::prepare(wake_.native_handle(), error_number);
  if (!supervisor) return;  // the next command tries again
  spare_ = {supervisor->pid(), -1, false, 0};
  supervised_[spare_.pid] = {std::move(supervisor), nullptr};
}

void Agent::announce_spare() {
  if (spare_.pid < 0 || spare_.command >= 0) return;
  spare_.command = supervised_.at(spare_.pid).supervisor->command_pid();
  if (spare_.command >= 0) channel_->post({{"id", 0}, {"ev", "spare"}, {"pid", spare_.command}});
}

void Agent::lose(std::unique_ptr<Supervisor> supervisor) {
  const pid_t command = supervisor->command_pid();
  if (command > 0) lost_[command] = std::move(supervisor);
}

void Agent::on_placed(const wire::Frame& frame) {
  if (spare_.placed || spare_.command < 0 || frame.number("pid", 0) != static_cast<std::uint64_t>(spare_.command)) return;
  spare_.placed = true;
  spare_.group = frame.number("group", 0);
  spare_changed_.cancel();
}

asio::awaitable<Supervisor*> Agent::start_in_group(std::uint32_t id, CommandImage image, std::shared_ptr<Command> owner, std::uint64_t& group, int& error_number) {
  image.oom_score_adj = oom_score_adj_;
  while (!spare_.placed) {
    if (owner->interrupted()) co_return nullptr;
    if (spare_.pid < 0) make_spare();
    if (spare_.pid < 0) {
      error_number = EAGAIN;
      co_return nullptr;
    }
    // Whoever is first has it; the others go on waiting for the next one. (The timer never expires; setting it anew would wake all who wait.)
    co_await spare_changed_.async_wait(kNoError);
    if (spare_error_ != 0) {
      error_number = std::exchange(spare_error_, 0);
      co_return nullptr;
    }
  }
  const auto spare = std::exchange(spare_, {});
  auto& entry = supervised_.at(spare.pid);
  group = spare.group;
  if (group == 0) {
    // There is no group to be had, and no command goes without.
    entry.supervisor->dismiss();
    error_number = EAGAIN;
    co_return nullptr;
  }
  entry.owner = std::move(owner);
  Supervisor* const supervisor = entry.supervisor.get();
  supervisor->begin(std::move(image));
  // Before the next spare is spoken of: what `sandy` hears of that while this group is nobody's, it takes for a loss.
  channel_->post({{"id", id}, {"ev", "group"}, {"group", group}});
  memory_timer_.cancel();
  if (!configuration_.one_command) make_spare();
  co_return supervisor;
}

asio::awaitable<void> Agent::watch_memory() {
  constexpr auto kPeriod = std::chrono::milliseconds(100);
  while (true) {
    // Nothing runs: nothing to look at until something does.
    const bool idle = supervised_.size() == (spare_.pid >= 0 ? 1U : 0U);
    memory_timer_.expires_at(idle ? asio::steady_timer::time_point::max() : asio::steady_timer::clock_type::now() + kPeriod);
    co_await memory_timer_.async_wait(kNoError);
    std::vector<pid_t> own{1, spare_.command};
    for (const auto& [pid, entry] : supervised_) own.push_back(pid);
    const auto killed = end_largest_above(configuration_.watched_memory, own);
    if (!killed) continue;
    for (const auto& [pid, entry] : supervised_) {
      if (entry.owner) entry.owner->note_memory_kill(*killed);
    }
  }
}

asio::awaitable<void> Agent::watch_ends() {
  while (true) {
    const auto [error] = co_await wake_.async_wait(asio::posix::descriptor_base::wait_read, kNoError);
    if (error) co_return;
    std::uint64_t count = 0;
    (void)!::read(wake_.native_handle(), &count, sizeof count);
    announce_spare();
    for (auto& [pid, entry] : supervised_) {
      if (entry.owner && entry.supervisor->executed()) entry.owner->on_executed(*entry.supervisor);
      if (entry.owner && entry.supervisor->ended()) std::exchange(entry.owner, nullptr)->on_ended(*entry.supervisor);
    }
  }
}

asio::awaitable<void> Agent::watch_children() {
  while (true) {
    const auto [error] = co_await children_.async_wait(asio::posix::descriptor_base::wait_read, kNoError);
    if (error) co_return;
    signalfd_siginfo info;
    while (::read(children_.native_handle(), &info, sizeof info) > 0) {}
    reap();
  }
}

void Agent::reap() {
  bool strays = false;
  while (true) {
    int status = 0;
    const pid_t pid = ::waitpid(-1, &status, WNOHANG | __WALL);
    if (pid <= 0) break;
    if (pid == spare_.pid) {
      // A command has killed it (all that it can, with kill(-1)), and gets no other one for that before it is needed.
      const auto it = supervised_.find(pid);
      if (WIFSIGNALED(status)) {
        strays = true;
        lose(std::move(it->second.supervisor));
      }
      // It could not make its child, and the next one could not either.
      if (it->second.supervisor) spare_error_ = it->second.supervisor->exec_errno();
      supervised_.erase(it);
      spare_ = {};
      spare_changed_.cancel();
      continue;
    }
    if (const auto it = supervised_.find(pid); it != supervised_.end()) {
      if (it->second.supervisor->ended()) {
        if (it->second.owner) it->second.owner->on_ended(*it->second.supervisor);
        supervised_.erase(it);
        if (WIFSIGNALED(status)) strays = true;
        continue;
      }
      // Somebody killed the supervisor: its command and descendants are now our children, and must go.
      strays = true;
      it->second.supervisor->note_status(status);
      if (it->second.owner) it->second.owner->on_ended(*it->second.supervisor);
      lose(std::move(it->second.supervisor));
      supervised_.erase(it);
    } else {
      lost_.erase(pid);
      strays = true;  // an orphan of such a supervisor; it may have siblings
    }
  }
  if (!strays) return;
  std::vector<pid_t> keep;
  for (const auto& [pid, entry] : supervised_) keep.push_back(pid);
  kill_children_except(keep);
}

}  // namespace sandy::agent
