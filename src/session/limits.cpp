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
  const auto name = group_->dying_process();
  if (name.empty()) return;
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
  commands_[command] = {0, group_->throttled_us(), group_->forks_refused(), 0, {}};
}

void Limits::finish(std::uint32_t id, wire::Json& end) {
  const auto found = commands_.find(id);
  if (found == commands_.end()) return;
  const Command command = std::move(found->second);
  commands_.erase(found);
  const auto used = group_->command_usage(command.group);
  const auto& limits = group_->limits();
  if (used.memory_peak) end["memory_peak"] = *used.memory_peak;
  end["cpu_us"] = used.cpu_us;
  // The agent's word, where we have not seen it: a name for people, no more.
  const auto said = end.find("killed");
  const std::string killed = !command.killed.empty() ? command.killed : said != end.end() && said->is_string() ? said->get<std::string>() : std::string();
  end.erase("killed");
  auto notes = wire::Json::array();
  if (used.oom_kills > 0) {
    end["oom_kills"] = used.oom_kills;
    // Its main process: then that is how it ended. (128 + 9 of a shell is an exit status, and may mean anything.)
    const auto signal = end.find("signal");
    const bool main = end.value("reason", "") == "signalled" && signal != end.end() && *signal == SIGKILL;
    if (main) {
      end["reason"] = "out_of_memory";
      // What it leaves would go on without it, and hold the memory.
      group_->kill_command(command.group);
    }
    std::string note = main ? "killed: " : std::to_string(used.oom_kills) + (used.oom_kills == 1 ? " process was killed: " : " processes were killed: ");
    note += "memory limit";
    if (limits.memory) note += " " + size_words(*limits.memory);
    if (used.memory_peak) note += ", peak " + size_words(*used.memory_peak);
    if (!killed.empty()) note += ", by process " + printable(killed);
    notes.push_back(std::move(note));
  }
  if (limits.pids && group_->forks_refused() > command.forks_refused) {
    notes.push_back("process limit " + std::to_string(*limits.pids) + " reached");
  }
  if (const auto all = group_->throttled_us(); limits.cpus && all > command.throttled_us) {
    const auto throttled = all - command.throttled_us;
    end["throttled_us"] = throttled;
    if (throttled >= kToldThrottling) notes.push_back("CPU limit " + cores_words(*limits.cpus) + ": held back for " + seconds_words(throttled));
  }
  if (!notes.empty()) end["limit_notes"] = std::move(notes);
  if (command.group != 0) group_->end_command(command.group);
}

void tell_watched_limit(std::uint64_t memory, wire::Json& end) {
  const auto said = end.find("killed"), count = end.find("memory_kills");
  const std::string name = said != end.end() && said->is_string() ? said->get<std::string>() : std::string();
  const auto kills = count != end.end() && count->is_number_unsigned() ? count->get<std::uint64_t>() : std::uint64_t{0};
  end.erase("killed");
  end.erase("memory_kills");
  if (kills == 0 || memory == 0) return;
  const auto signal = end.find("signal");
  const bool main = end.value("reason", "") == "signalled" && signal != end.end() && *signal == SIGKILL;
  if (main) end["reason"] = "out_of_memory";
  end["oom_kills"] = kills;
  std::string note = main ? "killed: " : std::to_string(kills) + (kills == 1 ? " process was killed: " : " processes were killed: ");
  note += "memory limit " + size_words(memory) + ", as the agent saw it";
  if (!name.empty()) note += ", by process " + printable(name);
  end["limit_notes"] = wire::Json::array({std::move(note)});
}

void Limits::close() {
  boost::system::error_code ignored;
  changes_.close(ignored);
}

}  // namespace sandy::session
