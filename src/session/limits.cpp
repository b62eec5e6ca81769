#include "session/limits.h"

#include <signal.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <array>
#include <cstdio>

#include "base/error.h"
#include "session/usage.h"

namespace sandy::session {
namespace {

constexpr std::uint64_t kToldThrottling = 100'000;  // microseconds; less is not worth a line

std::string seconds_words(std::uint64_t microseconds) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f s", static_cast<double>(microseconds) / 1e6);
  return text;
}

// The agent may have put any JSON there.
std::string word(const wire::Json& header, const char* key) {
  const auto found = header.find(key);
  return found != header.end() && found->is_string() ? found->get<std::string>() : std::string();
}

// Processes of a command were killed for want of memory: true, its own main process was, and then that is how it ended. (128 + 9 of a shell is an exit status, and may
// mean anything.)
bool tell_kills(wire::Json& end, std::uint64_t kills, const std::string& limit, const std::string& process) {
  const auto signal = end.find("signal");
  const bool main = word(end, "reason") == "signalled" && signal != end.end() && *signal == SIGKILL;
  if (main) end["reason"] = "out_of_memory";
  end["oom_kills"] = kills;
  std::string note = main ? "killed: " : std::to_string(kills) + (kills == 1 ? " process was killed: " : " processes were killed: ");
  note += limit;
  if (!process.empty()) note += ", by process " + printable(process);
  end["limit_notes"].push_back(std::move(note));
  return main;
}

std::string cores_words(double cores) {
  char text[32];
  std::snprintf(text, sizeof text, "%g", cores);
  return text;
}

}  // namespace

Limits::Limits(asio::any_io_executor executor, std::unique_ptr<cgroup::SandboxCgroup> group) : group_(std::move(group)), changes_(executor) {}

std::shared_ptr<Limits> Limits::make(asio::any_io_executor executor, std::unique_ptr<cgroup::SandboxCgroup> group) {
  std::shared_ptr<Limits> self(new Limits(executor, std::move(group)));
  // Without it (a user has a limited number of these) the kills are counted all the same, and only the process' name may be missing.
  const int fd = ::inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
  if (fd >= 0) {
    self->changes_.assign(fd);
    if (::inotify_add_watch(fd, self->group_->memory_events_path().c_str(), IN_MODIFY) >= 0) self->watch();
  }
  return self;
}

void Limits::watch() {
  changes_.async_wait(asio::posix::descriptor_base::wait_read, [weak = weak_from_this()](const boost::system::error_code& error) {
    const auto self = weak.lock();
    if (!self || error) return;
    std::array<char, 4'096> events;
    while (::read(self->changes_.native_handle(), events.data(), events.size()) > 0) {}
    self->note_kills();
    self->watch();
  });
}

void Limits::note_kills() {
  // The file changes also whenever the limit is met, which may be a hundred times a second: then nobody's processes are looked through.
  const auto all_kills = group_->oom_kills();
  if (all_kills == named_kills_) return;
  const auto name = group_->dying_process();
  if (name.empty()) return;  // it is not dying yet: with the next change
  named_kills_ = all_kills;
  for (auto& [id, command] : commands_) {
    const auto kills = group_->command_usage(command.group).oom_kills;
    if (kills > command.oom_kills) command.killed = name;
    command.oom_kills = kills;
  }
}

bool Limits::take(const wire::Frame& event, wire::Channel& channel) {
  const auto ev = event.ev();
  if (ev == "spare") {
    const auto inside = event.number("pid", 0);
    const auto placed = inside > 0 && inside <= 0x7FFFFFFF ? group_->place(static_cast<int>(inside)) : Result<std::uint32_t>(0U);
    channel.post({{"id", 0}, {"op", "placed"}, {"pid", inside}, {"group", placed.value_or(0U)}});
    return true;
  }
  if (ev == "group") {
    const auto found = commands_.find(event.id);
    const auto group = static_cast<std::uint32_t>(event.number("group", 0));
    if (found != commands_.end() && found->second.group == 0 && group_->begin_command(group)) found->second.group = group;
    return true;
  }
  if (ev == "kill") {
    if (const auto found = commands_.find(event.id); found != commands_.end()) group_->kill_command(found->second.group);
    return true;
  }
  return false;
}

void Limits::begin(std::uint32_t command) {
  // (Of a group that is not yet: of none, or of all.)
  commands_[command] = {0, group_->throttled_us(), group_->forks_refused(0), 0, {}};
}

void Limits::finish(std::uint32_t id, wire::Json& end) {
  const auto found = commands_.find(id);
  if (found == commands_.end()) return;
  const Command command = std::move(found->second);
  commands_.erase(found);
  const auto used = group_->command_usage(command.group);
  const auto& limits = group_->plan().limits;
  if (used.memory_peak) end["memory_peak"] = *used.memory_peak;
  end["cpu_us"] = used.cpu_us;
  if (used.oom_kills > 0) {
    std::string limit = "memory limit";
    if (limits.memory) limit += " " + size_words(*limits.memory);
    if (used.memory_peak) limit += ", peak " + size_words(*used.memory_peak);
    // The agent's word, where we have not seen it: a name for people, no more.
    const bool main = tell_kills(end, used.oom_kills, limit, command.killed.empty() ? word(end, "killed") : command.killed);
    // What it leaves would go on without it, and hold the memory.
    if (main) group_->kill_command(command.group);
  }
  if (limits.pids && group_->forks_refused(command.group) > command.forks_refused) {
    end["limit_notes"].push_back("process limit " + std::to_string(*limits.pids) + " reached");
  }
  if (const auto all = group_->throttled_us(); limits.cpus && all > command.throttled_us) {
    const auto throttled = all - command.throttled_us;
    end["throttled_us"] = throttled;
    if (throttled >= kToldThrottling) end["limit_notes"].push_back("CPU limit " + cores_words(*limits.cpus) + ": held back for " + seconds_words(throttled));
  }
  if (command.group != 0) group_->end_command(command.group);
}

void tell_watched_limit(std::uint64_t memory, wire::Json& end) {
  const auto count = end.find("memory_kills");
  const auto kills = count != end.end() && count->is_number_unsigned() ? count->get<std::uint64_t>() : std::uint64_t{0};
  if (kills > 0 && memory > 0) tell_kills(end, kills, "memory limit " + size_words(memory) + ", as the agent saw it", word(end, "killed"));
  end.erase("killed");
  end.erase("memory_kills");
}

void Limits::close() {
  boost::system::error_code ignored;
  changes_.close(ignored);
}

}  // namespace sandy::session
