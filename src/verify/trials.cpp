#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <unistd.h>

#include "host/named_policy.h"
#include "host/programs.h"
#include "policy/paths.h"
#include "verify/explain.h"
#include "verify/secret_names.h"
#include "verify/trial.h"

namespace sandy::verify {
namespace {

using Words = std::vector<std::string>;

constexpr std::size_t kMostDenied = 256;  // rules: each takes a command

Control unavailable(const Error& error) { return {false, error.text()}; }

class Builder {
 public:
  explicit Builder(Setting& setting) : s_(setting) {}

  std::vector<Trial> all() {
    if (s_.wants(AttackClass::sockets)) sockets();
    if (s_.wants(AttackClass::syscalls)) syscalls();
    if (s_.wants(AttackClass::files)) files();
    if (s_.wants(AttackClass::processes)) processes();
    if (s_.wants(AttackClass::limits)) limits();
    return std::move(out_);
  }

 private:
  Trial& add(AttackClass in, std::string name, std::vector<int> rows, std::string attack, Control control, Words inside) {
    out_.push_back({{std::move(name), in, std::move(rows), std::move(attack)}, std::move(control), std::move(inside), Proof::report, {}, {}, {}});
    return out_.back();
  }

  // An attempt on a path of this machine: outside as it is, inside by each name that it may have there.
  Trial& on_path(AttackClass in, std::string name, std::vector<int> rows, std::string attack, const char* verb, const std::string& path, const Words& more = {}) {
    Words outside{verb, path}, inside{verb};
    for (auto& one : s_.inside(path)) inside.push_back(std::move(one));
    for (const auto& one : more) outside.push_back(one), inside.push_back(one);
    return add(in, std::move(name), std::move(rows), std::move(attack), s_.outside.control(outside), std::move(inside));
  }

  // The same words on both sides.
  Trial& same(AttackClass in, std::string name, std::vector<int> rows, std::string attack, const Words& words, bool in_namespaces = false) {
    return add(in, std::move(name), std::move(rows), std::move(attack), s_.outside.control(words, in_namespaces), words);
  }

  std::function<std::string()> shown(Words paths, bool writing = false) {
    return [setting = &s_, paths = std::move(paths), writing] { return setting->shown_by(paths, writing); };
  }

  void sockets() {
    listener("stream-home", {20}, "connect to a socket in your home directory", "stream", s_.canaries.home.stream);
    listener("datagram-home", {20}, "send to a socket in your home directory", "datagram", s_.canaries.home.datagram);
    listener("later-home", {20}, "connect to a socket made later in your home directory", "stream", s_.canaries.home.later);
    listener("stream-tmp", {20}, "connect to a socket in /tmp", "stream", s_.canaries.tmp.stream);
    listener("datagram-tmp", {20}, "send to a socket in /tmp", "datagram", s_.canaries.tmp.datagram);
    listener("later-tmp", {20}, "connect to a socket made later in /tmp", "stream", s_.canaries.tmp.later);
    listener("stream-runtime", {20}, "connect to a socket in $XDG_RUNTIME_DIR", "stream", s_.canaries.runtime.stream);
    listener("later-runtime", {20}, "connect to a socket made later in $XDG_RUNTIME_DIR", "stream", s_.canaries.runtime.later);
    listener("abstract-stream", {21}, "connect to an abstract socket", "stream", s_.canaries.abstract_stream);
    listener("abstract-datagram", {21}, "send to an abstract socket", "datagram", s_.canaries.abstract_datagram);
    services("session-bus", {19}, "connect to your session bus or service manager", session_sockets());
    services("system-services", {19, 20}, "connect to the system's bus or a container engine", system_sockets());
    services("agents-and-displays", {20, 21}, "connect to your SSH agent, X11 or Wayland", desktop_sockets());
    same(AttackClass::sockets, "descriptors", {25}, "use a descriptor that `sandy` was started with", {"descriptors", "secret"});
  }

  void listener(std::string name, std::vector<int> rows, std::string attack, const char* kind, Canary<CanaryListener>& canary) {
    if (!canary) {
      add(AttackClass::sockets, std::move(name), std::move(rows), std::move(attack), unavailable(canary.error()), {kind, "/nonexistent"});
      return;
    }
    Trial& trial = on_path(AttackClass::sockets, std::move(name), std::move(rows), std::move(attack), kind, canary->address());
    if (!canary->visited() && trial.control.worked) trial.control = {false, "nothing arrives outside a sandbox either"};
    trial.arrived = [&canary] { return canary->visited(); };
    trial.allowed_by = shown({canary->address()});
  }

  // Real ones: they are connected to, and nothing is said to them.
  void services(std::string name, std::vector<int> rows, std::string attack, const Words& addresses) {
    Words words{"stream"}, reached;
    for (const auto& address : addresses) {
      if (!s_.outside.control({"stream", address}).worked) continue;
      reached.push_back(address);
      for (auto& one : s_.inside(address)) words.push_back(std::move(one));
    }
    const bool any = !reached.empty();
    if (!any) words.emplace_back("/nonexistent");
    Trial& trial = add(AttackClass::sockets, std::move(name), std::move(rows), std::move(attack), {any, "this user reaches none here"}, words);
    trial.allowed_by = shown(std::move(reached));
  }

  static std::string variable(const char* name) {
    const char* const value = std::getenv(name);
    return value == nullptr ? "" : value;
  }

  static std::string runtime() {
    const auto named = variable("XDG_RUNTIME_DIR");
    return named.empty() ? "/run/user/" + std::to_string(::geteuid()) : named;
  }

  static Words session_sockets() {
    Words out{runtime() + "/bus", runtime() + "/systemd/private"};
    const auto address = variable("DBUS_SESSION_BUS_ADDRESS");
    for (const auto& [prefix, abstract] : {std::pair("unix:path=", ""), std::pair("unix:abstract=", "@")}) {
      if (address.starts_with(prefix)) out.push_back(abstract + address.substr(std::strlen(prefix), address.find_first_of(",;") - std::strlen(prefix)));
    }
    return out;
  }

  static Words system_sockets() {
    return {"/run/dbus/system_bus_socket", "/run/systemd/private", "/run/docker.sock", "/run/podman/podman.sock", runtime() + "/podman/podman.sock", runtime() + "/docker.sock",
            "/run/containerd/containerd.sock", "/run/libvirt/libvirt-sock", "/run/systemd/journal/stdout", "/run/nscd/socket"};
  }

  static Words desktop_sockets() {
    Words out{"/tmp/.X11-unix/X0", "@/tmp/.X11-unix/X0", "/tmp/.X11-unix/X1", "@/tmp/.X11-unix/X1", runtime() + "/wayland-0", runtime() + "/pipewire-0", runtime() + "/pulse/native"};
    if (const auto agent = variable("SSH_AUTH_SOCK"); agent.starts_with('/')) out.push_back(agent);
    return out;
  }

  void syscall(const char* name, std::vector<int> rows, const char* attack, bool in_namespaces = false) {
    Trial& trial = same(AttackClass::syscalls, name, std::move(rows), attack, {name}, in_namespaces);
    const bool traces = std::strcmp(name, "trace-child") == 0 || std::strcmp(name, "take-descriptor") == 0;
    trial.allowed_by = [policy = &s_.policy, traces] { return permitted_by(*policy, traces); };
  }

  void syscalls() {
    syscall("vsock", {22}, "open a socket to the virtual machine's host (AF_VSOCK)");
    syscall("vsock-high-bits", {22}, "the same, with a number that a filter may misread");
    syscall("crypto-socket", {22}, "open a socket of the kernel's crypto (AF_ALG)");
    syscall("netfilter-socket", {22}, "open a netlink socket of netfilter");
    syscall("audit-socket", {22}, "open a netlink socket of the audit system");
    syscall("packet-socket", {8, 22}, "open a packet socket", true);
    syscall("raw-socket", {8}, "open a raw socket", true);
    syscall("io-uring", {23}, "set up io_uring, which a filter doesn't see");
#ifdef __x86_64__
    syscall("x32", {24}, "make an x32 system call");
    syscall("i386", {24}, "make an i386 system call (int 0x80)");
    syscall("i386-socketcall", {24}, "make a socket by i386's socketcall");
#endif
    syscall("clone3-user", {24, 32}, "make a user namespace by clone3");
    syscall("clone-user", {32}, "make a user namespace by clone");
    syscall("unshare-user", {32}, "make a user namespace by unshare");
    syscall("setns", {32}, "join a namespace");
    syscall("open-tree", {24, 32}, "copy mounts by open_tree", true);
    syscall("fsopen", {24, 32}, "make a file system by fsopen", true);
    syscall("mount-setattr", {24, 32}, "change a mount by mount_setattr", true);
    syscall("mount-tmpfs", {32}, "mount a file system", true);
    syscall("bind-root", {32}, "mount / once more", true);
    syscall("remount", {32}, "mount / anew with other flags", true);
    syscall("chroot", {32}, "change the root", true);
    syscall("openat2", {24}, "open a file by openat2, whose flags a filter can't see");
    syscall("open-by-handle", {24}, "open a file by its handle");
    syscall("take-descriptor", {25}, "take a descriptor out of another process");
    syscall("trace-child", {34}, "trace a process");
    syscall("tiocsti", {26}, "type into a terminal (TIOCSTI)");
    syscall("bpf", {24}, "call bpf");
    syscall("perf", {24}, "call perf_event_open");
    syscall("userfaultfd", {24}, "call userfaultfd");
    syscall("keyring", {45}, "open your keyring");
  }

  void files() {
    secret("read-home", {37, 45}, "read a file of your home directory", s_.canaries.home);
    creation("write-home", {28, 29, 37}, "make a file in your home directory", s_.canaries.home);
    secret("read-tmp", {37}, "read a file of yours in /tmp", s_.canaries.tmp);
    creation("write-tmp", {37}, "make a file in your directory in /tmp", s_.canaries.tmp);
    secret("read-runtime", {20, 45}, "read a file of yours in $XDG_RUNTIME_DIR", s_.canaries.runtime);
    beside();
    links();
    state();
    programs();
    if (s_.policy_file.empty()) {
      add(AttackClass::files, "policy-file", {36}, "change the policy's file", {false, "no policy file was given"}, {"change", "/nonexistent"});
    } else {
      on_path(AttackClass::files, "policy-file", {36}, "change the policy's file", "change", s_.policy_file).allowed_by = shown({s_.policy_file}, true);
    }
    denied();
    made("set-user-id", {32}, "make a set-user-id program in the workspace");
    made("device", {38}, "make a device file (a whiteout) in the workspace");
    made("lease", {42}, "hold off who opens a file of the workspace (a lease)");
  }

  void secret(std::string name, std::vector<int> rows, std::string attack, const CanaryPlace& place) {
    if (!place.directory) {
      add(AttackClass::files, std::move(name), std::move(rows), std::move(attack), unavailable(place.directory.error()), {"read", "/nonexistent"});
      return;
    }
    on_path(AttackClass::files, std::move(name), std::move(rows), std::move(attack), "read", place.file("secret")).allowed_by = shown({place.file("secret")});
  }

  void creation(std::string name, std::vector<int> rows, std::string attack, const CanaryPlace& place) {
    if (!place.directory) {
      add(AttackClass::files, std::move(name), std::move(rows), std::move(attack), unavailable(place.directory.error()), {"create", "/nonexistent/new"});
      return;
    }
    Trial& trial = on_path(AttackClass::files, std::move(name), std::move(rows), std::move(attack), "create", place.file("new"));
    place.directory->remove_file("new");
    trial.arrived = [&place] {
      const bool there = place.directory->has("new");
      place.directory->remove_file("new");
      return there;
    };
    trial.allowed_by = shown({place.file("new")}, true);
  }

  void beside() {
    if (!s_.own_workspace) return;
    const auto& place = s_.canaries.tmp;
    const Control control = s_.outside.control({"read", place.file("workspace/../secret")});
    add(AttackClass::files, "beside", {30, 37}, "read a file beside the workspace", control, {"read", s_.plan.workspace + "/../secret", place.file("secret")}).allowed_by =
        shown({place.file("secret")});
  }

  void links() {
    const auto& place = s_.canaries.home.directory ? s_.canaries.home : s_.canaries.tmp;
    const auto target = place.file("secret");
    const auto& here = s_.canaries.tmp;
    if (!place.directory || !here.directory) {
      add(AttackClass::files, "symbolic-link", {30}, "read your file through a symbolic link in the workspace", {false, "there is no file to lead to"}, {"read", "/nonexistent"});
      return;
    }
    for (const auto& [name, words, row, attack] : {std::tuple("symbolic-link", "symlink", 30, "read your file through a symbolic link in the workspace"),
                                                   std::tuple("hard-link", "hard-link", 31, "read your file through a hard link in the workspace")}) {
      Control control = s_.outside.control({words, target, place.file(name)});
      add(AttackClass::files, name, {row}, attack, std::move(control), {words, s_.shown_inside(target), s_.directory() + "/" + name}).allowed_by = shown({target});
    }
    if (!s_.own_workspace) return;
    const Control planted = s_.outside.control({"symlink", target, here.file("workspace/planted")});
    add(AttackClass::files, "planted-link", {30}, "read your file through a link that was there before", planted, {"read", s_.plan.workspace + "/planted"}).allowed_by =
        shown({target});
  }

  void state() {
    const auto file = s_.state_directory + "/.sandy-verify-" + s_.nonce;
    Trial& trial = on_path(AttackClass::files, "state-directory", {18, 36}, "write where Sandy keeps its state", "create", file);
    ::unlink(file.c_str());
    trial.arrived = [file] { return ::access(file.c_str(), F_OK) == 0 && ::unlink(file.c_str()) == 0; };
    on_path(AttackClass::files, "state-listing", {18}, "list what Sandy keeps", "list", s_.state_directory);
  }

  void programs() {
    Words paths;
    for (const char* const name : {"sandy", "sandy-launch", "sandy-agent", "sandy-proxy", "sandy-attack"}) {
      if (const auto path = host::own_program(name)) paths.push_back(*path);
    }
    Words outside{"change"}, inside{"change"};
    outside.insert(outside.end(), paths.begin(), paths.end());
    for (const auto& path : paths) {
      for (auto& one : s_.inside(path)) inside.push_back(std::move(one));
    }
    inside.emplace_back(plan::kAgentPath);
    inside.emplace_back("/proc/1/exe");
    add(AttackClass::files, "programs", {34, 36}, "change Sandy's own programs", s_.outside.control(outside), inside).allowed_by = shown(paths, true);
    named_policies();
  }

  // A policy of somebody else's by a name that the next start may be given.
  void named_policies() {
    const std::string file = "/.sandy-verify-" + s_.nonce;
    Control control{false, "you can't make one outside either"};
    Words inside{"create"}, made;
    for (const auto& directory : host::policy_directories()) {
      for (auto& one : s_.inside(directory)) inside.push_back(one + file);
      if (!s_.outside.control({"create", directory + file}).worked) continue;
      ::unlink((directory + file).c_str());
      control.worked = true;
      made.push_back(directory + file);
    }
    Trial& trial = add(AttackClass::files, "policies", {36}, "make a policy that has a name", std::move(control), std::move(inside));
    trial.arrived = [made] { return std::ranges::count_if(made, [](const auto& path) { return ::unlink(path.c_str()) == 0; }) > 0; };
    trial.allowed_by = shown(made, true);
  }

  void denied() {
    std::size_t number = 0;
    for (const auto& rule : s_.policy.filesystem.rules) {
      if (rule.access != policy::Access::deny) continue;
      if (++number > kMostDenied) continue;
      // What another rule shows below it is none of what is denied.
      Words left_out;
      for (const auto& other : s_.policy.filesystem.rules) {
        if (other.access == policy::Access::deny || other.path.size() <= rule.path.size() + 1 || !policy::is_within(other.path, rule.path)) continue;
        const auto rest = other.path.substr(rule.path.size() + 1);
        left_out.push_back("-" + rest.substr(0, rest.find('/')));
      }
      on_path(AttackClass::files, "denied-" + std::to_string(number), {33}, "read what the policy denies: " + verify::shown(rule.path), "read-or-list", rule.path, left_out);
    }
    if (number <= kMostDenied) return;
    add(AttackClass::files, "denied-rest", {33}, "read what the policy denies besides", {false, std::to_string(number - kMostDenied) + " more rules are not tried"}, {"read", "/nonexistent"});
  }

  // In a directory of ours on either side.
  void made(const char* name, std::vector<int> rows, const char* attack) {
    const auto& place = s_.canaries.tmp;
    Control control = place.directory ? s_.outside.control({name, place.file(name)}) : unavailable(place.directory.error());
    add(AttackClass::files, name, std::move(rows), attack, std::move(control), {name, s_.directory() + "/" + name}).allowed_by = [policy = &s_.policy] {
      return permitted_by(*policy);
    };
  }

  void processes() {
    const auto& victim = s_.canaries.victim;
    const std::string value = std::string(kSecretVariable) + "=" + s_.canaries.secret;
    if (!victim) {
      add(AttackClass::processes, "victim", {34}, "reach a process of yours", unavailable(victim.error()), {"read", "/nonexistent"});
    } else {
      const auto pid = std::to_string(victim->pid());
      same(AttackClass::processes, "environment-of-another", {34, 45}, "read the environment of a process of yours", {"find", value, "/proc/" + pid + "/environ"});
      same(AttackClass::processes, "memory-of-another", {34}, "read the memory of a process of yours",
           {"memory-of", pid, victim->address(), std::to_string(s_.canaries.secret.size())});
      Trial& trial = same(AttackClass::processes, "signal", {34, 40}, "signal a process of yours", {"signal", pid});
      if (!s_.canaries.victim->signalled() && trial.control.worked) trial.control = {false, "the signal does not arrive outside a sandbox either"};
      trial.proof = Proof::arrival;  // inside, the number may be another process's
      trial.arrived = [&canary = s_.canaries.victim] { return canary->signalled(); };
    }
    const auto& place = s_.canaries.home.directory ? s_.canaries.home : s_.canaries.tmp;
    Words roots{"read"};
    Words owners{"self", "1", "thread-self"};
    if (victim) owners.push_back(std::to_string(victim->pid()));
    for (const auto& owner : owners) {
      for (const char* const name : {"root", "cwd"}) roots.push_back("/proc/" + owner + "/" + name + place.file("secret"));
    }
    same(AttackClass::processes, "root-of-another", {34}, "read your file by way of /proc/PID/root", roots).allowed_by = shown({place.file("secret")});
    same(AttackClass::processes, "parent", {25, 34}, "look into the sandbox's own first process", {"parent"});
    Trial& environment = add(AttackClass::processes, "environment", {45}, "read a variable of your environment", s_.outside.control({"find", value, "/proc/self/environ"}),
                             {"find", value, "/proc/self/environ", "/proc/1/environ"});
    environment.allowed_by = [policy = &s_.policy] { return passed_by(*policy, kSecretVariable); };
    secret_variables();
  }

  // Those of the caller that may hold secrets, by their names; so many in one message.
  void secret_variables() {
    constexpr std::size_t kAtOnce = 200;
    std::vector<Words> all(1, Words{"variables"});
    for (char** entry = environ; *entry != nullptr; ++entry) {
      const std::string_view text = *entry;
      const auto name = text.substr(0, text.find('='));
      if (name == kSecretVariable || text.size() <= name.size() + 1 || !may_be_secret(name)) continue;
      if (all.back().size() > kAtOnce) all.push_back({"variables"});
      all.back().emplace_back(name);
    }
    for (std::size_t i = 0; i < all.size(); ++i) secret_variables(i == 0 ? "secret-variables" : "secret-variables-" + std::to_string(i + 1), std::move(all[i]));
  }

  void secret_variables(std::string name, Words words) {
    Control control{false, "your environment has no variable with a name like a secret's"};
    if (words.size() > 1) control = s_.outside.control(words);
    if (words.size() == 1) words.emplace_back("-");
    Trial& trial = add(AttackClass::processes, std::move(name), {45}, "read variables of yours with names like a secret's", std::move(control), words);
    // A variable of that name with another value is none of the caller's.
    auto passed = std::make_shared<std::string>();
    trial.look = [passed](const wire::Json& /*end*/, Inside& inside) {
      if (inside.report.word != AttemptReport::Word::done) return;
      std::string_view rest = inside.report.detail;
      while (!rest.empty()) {
        const auto item = rest.substr(0, rest.find(' '));
        rest.remove_prefix(std::min(item.size() + 1, rest.size()));
        const auto equals = item.find('=');
        if (equals == std::string_view::npos) continue;
        const std::string key(item.substr(0, equals));
        const char* const value = std::getenv(key.c_str());
        if (value == nullptr || std::to_string(digest(value)) != item.substr(equals + 1)) continue;
        inside.arrived = true;
        *passed = key;
      }
      inside.report = {AttemptReport::Word::refused, "they have values of the sandbox's own"};
    };
    trial.allowed_by = [policy = &s_.policy, passed] { return passed_by(*policy, *passed); };
  }

  void limits() { same(AttackClass::limits, "cgroup", {39}, "change the limits of its own control group", {"cgroup"}); }

  Setting& s_;
  std::vector<Trial> out_;
};

}  // namespace

std::vector<Trial> trials(Setting& setting) { return Builder(setting).all(); }

}  // namespace sandy::verify
