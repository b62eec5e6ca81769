#include "fake_host.h"

#include <algorithm>
#include <stdexcept>

#include "plan/environment.h"
#include "plan/path_text.h"
#include "policy/base64.h"
#include "policy/json_reader.h"
#include "policy/validate.h"

namespace sandy::testing {
namespace {

using plan::FileType;

constexpr const char* kBubblewrapOptions[] = {
    "--args",      "--bind-fd", "--ro-bind-fd",   "--unshare-user", "--unshare-ipc",      "--unshare-pid",  "--unshare-net", "--unshare-uts", "--unshare-cgroup-try",
    "--chdir",     "--perms",   "--ro-bind-data", "--seccomp",      "--disable-userns", "--new-session", "--as-pid-1",  "--size",
    "--remount-ro", "--hostname", "--uid",        "--gid",          "--symlink",          "--tmpfs",        "--proc",        "--dev",         "--dir"};

}  // namespace

std::string path_from_json(const std::string& text) {
  if (!text.starts_with("base64:")) return text;
  const auto bytes = policy::base64_decode(text.substr(7));
  if (!bytes) throw std::runtime_error("bad base64 in a case: " + text);
  return *bytes;
}

FakeHost::FakeHost() {
  add("/", FileType::directory);
  for (const char* directory : {"/usr/bin", "/usr/sbin", "/usr/lib", "/usr/lib64", "/etc", "/home/user/.local/state/sandy", "/home/user/project",
                                "/proc", "/dev", "/tmp", "/var/tmp", "/run", "/opt"}) {
    add(directory, FileType::directory);
  }
  add_link("/bin", "usr/bin");
  add_link("/sbin", "usr/sbin");
  add_link("/lib", "usr/lib");
  add_link("/lib64", "usr/lib64");
  base.uid = base.gid = 1000;
  base.home = "/home/user";
  base.bwrap = "/usr/bin/bwrap";
  for (const char* option : kBubblewrapOptions) base.bwrap_options.insert(option);
  base.environment = {{"PATH", "/usr/local/bin:/usr/bin:/bin"}, {"TERM", "xterm"}};
  base.etc_names = {"alternatives", "ld.so.cache", "localtime", "ssl/certs"};
}

void FakeHost::add(const std::string& path, FileType type) {
  for (std::size_t slash = path.find('/', 1); slash != std::string::npos; slash = path.find('/', slash + 1)) nodes_.try_emplace(path.substr(0, slash));
  nodes_[path] = {type, ""};
}

void FakeHost::add_link(const std::string& path, const std::string& target) {
  add(path, FileType::other);
  nodes_[path].target = target;
}

void FakeHost::remove(const std::string& path) {
  std::erase_if(nodes_, [&](const auto& item) { return item.first == path || item.first.starts_with(path + "/"); });
}

Result<FakeHost> FakeHost::from_json(const nlohmann::json& host) {
  FakeHost out;
  for (const auto& [key, value] : host.items()) {
    if (key == "uid") {
      out.base.uid = out.base.gid = out.caller.uid = value.get<std::uint32_t>();
      out.base.can_idmap = out.base.uid == 0;
    } else if (key == "home") {
      out.base.home = out.caller.home = value.get<std::string>();
    } else if (key == "cwd") {
      out.caller.cwd = value.get<std::string>();
    } else if (key == "state") {
      out.caller.state_dir = value.get<std::string>();
      out.add(out.caller.state_dir, FileType::directory);
    } else if (key == "environment") {
      out.base.environment = value.get<std::map<std::string, std::string>>();
    } else if (key == "cgroups") {
      // "systemd", or the directory that was delegated; with all controllers but those that stand in "cgroups_lack".
      out.base.cgroup.way = value == "systemd" ? plan::CgroupFacts::Way::systemd : plan::CgroupFacts::Way::delegated;
      if (value != "systemd") out.base.cgroup.parent = value.get<std::string>();
      const auto lacks = host.value("cgroups_lack", std::vector<std::string>());
      const auto has = [&](const char* name) { return std::ranges::find(lacks, name) == lacks.end(); };
      out.base.cgroup.memory = out.base.cgroup.swap = has("memory");
      out.base.cgroup.cpus = has("cpu");
      out.base.cgroup.pids = has("pids");
      out.base.cgroup.io = has("io");
      out.base.cgroup.why = "not delegated";
    } else if (key == "cgroups_lack") {
      continue;  // with "cgroups"
    } else if (key == "ram") {
      out.base.ram = value.get<std::uint64_t>();
    } else if (key == "etc") {
      out.base.etc_names = value.get<std::vector<std::string>>();
    } else if (key == "bwrap_lacks") {
      for (const auto& option : value) out.base.bwrap_options.erase(option.get<std::string>());
    } else if (key == "files") {
      for (const auto& [name, kind] : value.items()) {
        const std::string path = path_from_json(name), text = kind.get<std::string>();
        if (text.starts_with("-> ")) {
          out.add_link(path, path_from_json(text.substr(3)));
        } else if (text == "missing") {
          out.remove(path);
        } else if (text == "directory" || text == "file" || text == "fifo") {
          out.add(path, text == "directory" ? FileType::directory : text == "file" ? FileType::file : FileType::other);
        } else if (text == "socket" || text == "stale socket") {
          out.add(path, FileType::socket);
          if (text == "socket") out.base.sockets.push_back(path);
        } else {
          return fail("case: files", "no such type: " + text);
        }
      }
    } else {
      return fail("case: host", "unknown key: " + key);
    }
  }
  return out;
}

Result<plan::HostPath> FakeHost::resolve(const std::string& path) const {
  plan::HostPath out;
  auto rest = plan::components(path);
  std::string at;
  FileType type = FileType::directory;
  while (!rest.empty()) {
    const std::string name = rest.front();
    rest.pop_front();
    if (name == ".") continue;
    if (name == "..") {
      if (at.empty()) continue;
      if (type != FileType::directory) return fail(printable(path), "\"..\" stands behind what is no directory");
      out.passed.push_back(at);
      at = at.substr(0, at.rfind('/'));
      continue;
    }
    at += "/" + name;
    const auto node = nodes_.find(at);
    if (type != FileType::directory || node == nodes_.end()) {
      type = FileType::missing;
      continue;
    }
    if (node->second.target.empty()) {
      type = node->second.type;
      continue;
    }
    if (out.links.size() == 40) return fail(printable(path), "Too many levels of symbolic links");
    out.links.push_back({at, node->second.target});
    at = node->second.target.starts_with('/') ? "" : at.substr(0, at.rfind('/'));
    type = FileType::directory;
    const auto more = plan::components(node->second.target);
    rest.insert(rest.begin(), more.begin(), more.end());
  }
  out.canonical = at.empty() ? "/" : at;
  out.type = type;
  return out;
}

Result<policy::SandboxPolicy> FakeHost::policy(std::string_view json) const {
  const auto draft = policy::read_policy(json);
  if (!draft) return std::unexpected(draft.error());
  policy::Enforcement enforcement;
  if (base.cgroup.way != plan::CgroupFacts::Way::none) {
    const auto& cgroup = base.cgroup;
    enforcement = {cgroup.memory, cgroup.swap, cgroup.cpus, cgroup.pids, cgroup.io, cgroup.why, cgroup.fix};
  }
  return policy::validate(*draft, caller, enforcement);
}

Result<plan::HostFacts> FakeHost::facts(const policy::PolicyFields& policy) const {
  plan::HostFacts out = base;
  auto add_fact = [&](const std::string& path, const std::string& key) -> Result<void> {
    auto resolved = resolve(path);
    if (!resolved) return std::unexpected(Error{key + ": " + resolved.error().what, resolved.error().why, {}});
    out.paths[path] = std::move(*resolved);
    return {};
  };
  std::ranges::sort(out.sockets);
  for (const auto& path : plan::system_paths()) {
    if (auto r = add_fact(path, "system"); !r) return std::unexpected(r.error());
  }
  (void)add_fact(base.home, "home");
  if (const auto path = base.environment.find("PATH"); path != base.environment.end()) {
    for (const auto& entry : plan::split_path(path->second)) (void)add_fact(entry, "PATH");
  }
  if (policy.filesystem.workspace.mode == policy::WorkspaceMode::bind) {
    if (auto r = add_fact(policy.filesystem.workspace.path, "filesystem.workspace.path"); !r) return std::unexpected(r.error());
  }
  for (const auto& rule : policy.filesystem.rules) {
    if (auto r = add_fact(rule.path, rule.key); !r) return std::unexpected(r.error());
  }
  auto state = resolve(caller.state_dir);
  if (!state) return std::unexpected(state.error());
  out.state_dir = std::move(*state);
  for (const char* tree : {"/proc", "/dev", "/sys"}) {
    auto path = resolve(tree);
    if (!path) return std::unexpected(path.error());
    if (path->type != FileType::missing) out.kernel_trees.push_back(std::move(*path));
  }
  return out;
}

Result<plan::SandboxPlan> FakeHost::plan(std::string_view policy_json) const {
  const auto valid = policy(policy_json);
  if (!valid) return std::unexpected(valid.error());
  const auto known = facts(valid->fields());
  if (!known) return std::unexpected(known.error());
  return plan::make_plan(*valid, *known);
}

}  // namespace sandy::testing
