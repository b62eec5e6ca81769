#include "host/launch.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "base/memfd.h"
#include "host/children.h"
#include "host/namespaces_probe.h"
#include "host/path_resolver.h"
#include "host/programs.h"

namespace sandy::host {
namespace {

constexpr int kAgentSocket = 3, kArguments = 4, kFirstSlot = 5;  // in bubblewrap's process

Result<UniqueFd> open_slot(const plan::SandboxPlan& plan, const plan::FdSlot& slot, LaunchedSandbox& launched, const StateDirectory* state,
                           std::string_view seccomp) {
  using Kind = plan::FdSlot::Kind;
  switch (slot.kind) {
    case Kind::host_path: return open_canonical(slot.text);
    case Kind::state: return launched.directory->directory(slot.text);
    case Kind::data: return sealed_memfd("sandy-data", slot.text);
    case Kind::seccomp: return sealed_memfd("sandy-seccomp", seccomp);
    case Kind::etc: {
      auto etc = etc_directory(*state, *plan.etc);
      if (!etc) return std::unexpected(etc.error());
      launched.etc_lock = std::move(etc->lock);
      return std::move(etc->path);
    }
    case Kind::agent: {
      auto program = own_program("sandy-agent");
      if (!program) return std::unexpected(program.error());
      UniqueFd fd(::open(program->c_str(), O_PATH | O_CLOEXEC));
      if (!fd) return fail("sandy-agent", errno_text(errno));
      return fd;
    }
  }
  return fail("plan", "a slot of no known kind");
}

class SpawnActions {
 public:
  SpawnActions() {
    posix_spawn_file_actions_init(&actions_);
    posix_spawnattr_init(&attributes_);
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setsigmask(&attributes_, &none);
    posix_spawnattr_setsigdefault(&attributes_, &all);
    // A process group of its own: what a terminal or timeout(1) sends to ours is for us, and not for bubblewrap to die of.
    posix_spawnattr_setpgroup(&attributes_, 0);
    posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  }
  ~SpawnActions() {
    posix_spawn_file_actions_destroy(&actions_);
    posix_spawnattr_destroy(&attributes_);
  }
  SpawnActions(const SpawnActions&) = delete;
  SpawnActions& operator=(const SpawnActions&) = delete;

  void open_null(int target) { posix_spawn_file_actions_addopen(&actions_, target, "/dev/null", O_RDWR, 0); }
  void dup(int from, int target) { posix_spawn_file_actions_adddup2(&actions_, from, target); }
  int spawn(const std::string& program, const std::vector<std::string>& argv, pid_t& pid) {
    std::vector<char*> words;
    for (const auto& word : argv) words.push_back(const_cast<char*>(word.c_str()));
    words.push_back(nullptr);
    // An empty environment: what bubblewrap starts with stays readable in the sandbox's /proc/1/environ.
    std::array<char*, 1> environment{nullptr};
    return ::posix_spawn(&pid, program.c_str(), &actions_, &attributes_, words.data(), environment.data());
  }

 private:
  posix_spawn_file_actions_t actions_;
  posix_spawnattr_t attributes_;
};

}  // namespace

Result<LaunchedSandbox> launch(const plan::SandboxPlan& plan, const std::string& id, std::string_view seccomp) {
  LaunchedSandbox launched;
  // Without root there is nothing to prepare, and bubblewrap is started at once.
  std::string program = plan.bwrap;
  std::vector<std::string> argv{plan.bwrap};
  if (plan.host_ids) {
    auto launcher = own_program("sandy-launch");
    if (!launcher) return std::unexpected(launcher.error());
    program = std::move(*launcher);
    argv = {"sandy-launch", "--user", std::to_string(plan.host_ids->first) + ":" + std::to_string(plan.host_ids->second)};
  }
  if (auto allowed = check_root(); !allowed) return std::unexpected(allowed.error());
  auto state = StateDirectory::open();
  if (!state) return std::unexpected(state.error());
  StartMark::sweep(*state);
  auto mark = StartMark::make(*state, id);
  if (!mark) return std::unexpected(mark.error());
  launched.mark = std::move(*mark);
  if (plan.root == plan::RootKind::private_directory) {
    state->sweep();
    auto directory = SandboxDirectory::make(*state, id, plan.host_ids);
    if (!directory) return std::unexpected(directory.error());
    launched.directory = std::make_unique<SandboxDirectory>(std::move(*directory));
  }

  const int first_free = kFirstSlot + static_cast<int>(plan.slots.size());
  std::vector<UniqueFd> slots;
  std::vector<int> numbers;
  auto keep = [&](UniqueFd fd) -> Result<UniqueFd> {
    // Out of the way of the numbers that the child gets them under.
    UniqueFd high(::fcntl(fd.get(), F_DUPFD_CLOEXEC, first_free));
    if (!high) return fail("descriptors", errno_text(errno), "raise the limit on open files (ulimit -n)");
    return high;
  };
  for (std::size_t i = 0; i < plan.slots.size(); ++i) {
    auto fd = open_slot(plan, plan.slots[i], launched, &*state, seccomp);
    if (!fd) return std::unexpected(fd.error());
    auto high = keep(std::move(*fd));
    if (!high) return std::unexpected(high.error());
    slots.push_back(std::move(*high));
    numbers.push_back(kFirstSlot + static_cast<int>(i));
    using Kind = plan::FdSlot::Kind;
    const Kind kind = plan.slots[i].kind;
    if (plan.host_ids && (kind == Kind::host_path || kind == Kind::state || kind == Kind::etc || kind == Kind::agent)) {
      argv.push_back(plan.slots[i].idmap ? "--idmap" : "--stage");
      argv.push_back(std::to_string(numbers.back()));
    }
  }

  std::string arguments;
  for (const auto& word : plan::bwrap_options(plan, numbers)) arguments += word + '\0';
  auto arguments_fd = sealed_memfd("sandy-bwrap-arguments", arguments);
  if (!arguments_fd) return std::unexpected(arguments_fd.error());
  auto arguments_high = keep(std::move(*arguments_fd));
  if (!arguments_high) return std::unexpected(arguments_high.error());

  int sockets[2], pipe[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) != 0) return fail("socketpair", errno_text(errno));
  launched.agent.reset(sockets[0]);
  auto agent_high = keep(UniqueFd(sockets[1]));
  if (!agent_high) return std::unexpected(agent_high.error());
  if (::pipe2(pipe, O_CLOEXEC) != 0) return fail("pipe", errno_text(errno));
  launched.messages.reset(pipe[0]);
  auto messages_high = keep(UniqueFd(pipe[1]));
  if (!messages_high) return std::unexpected(messages_high.error());

  if (plan.host_ids) argv.insert(argv.end(), {"--", plan.bwrap});
  argv.insert(argv.end(), {"--args", std::to_string(kArguments), "--", plan::kAgentPath});
  SpawnActions actions;
  actions.open_null(0);
  actions.open_null(1);
  actions.dup(messages_high->get(), 2);
  actions.dup(agent_high->get(), kAgentSocket);
  actions.dup(arguments_high->get(), kArguments);
  for (std::size_t i = 0; i < slots.size(); ++i) actions.dup(slots[i].get(), numbers[i]);
  if (const int error = actions.spawn(program, argv, launched.pid); error != 0) return fail(printable(program), errno_text(error));
  note_child(launched.pid);
  launched.pidfd.reset(static_cast<int>(::syscall(SYS_pidfd_open, launched.pid, 0)));
  if (!launched.pidfd) {
    const int error = errno;
    ::kill(launched.pid, SIGKILL);
    forget_child(launched.pid);
    return fail("pidfd_open", errno_text(error), "Sandy needs Linux 5.3 or newer");
  }
  return launched;
}

}  // namespace sandy::host
