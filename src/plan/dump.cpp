#include "plan/dump.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace sandy::plan {
namespace {

using Json = nlohmann::ordered_json;

std::string slot_name(const FdSlot& slot) {
  const std::string owner = slot.idmap ? " (id-mapped)" : "";
  switch (slot.kind) {
    case FdSlot::Kind::host_path: return "<host " + printable(slot.text) + owner + ">";
    case FdSlot::Kind::state: return "<state " + printable(slot.text) + ">";
    case FdSlot::Kind::etc: return "<etc view>";
    case FdSlot::Kind::data: return "<" + std::to_string(slot.text.size()) + " bytes>";
    case FdSlot::Kind::agent: return "<sandy-agent>";
    case FdSlot::Kind::seccomp: return "<seccomp " + printable(slot.text) + ">";
  }
  return "<?>";
}

// bwrap_options() with slot names where the numbers would stand: the operand after these options. A link's text may be
// any word, so it is not looked at.
std::vector<std::string> named_options(const SandboxPlan& plan) {
  std::vector<int> numbers;
  for (std::size_t i = 0; i < plan.slots.size(); ++i) numbers.push_back(static_cast<int>(i));
  std::vector<std::string> out;
  const auto words = bwrap_options(plan, numbers);
  for (std::size_t i = 0; i < words.size(); ++i) {
    out.push_back(printable(words[i]));
    const bool descriptor = words[i] == "--bind-fd" || words[i] == "--ro-bind-fd" || words[i] == "--ro-bind-data" || words[i] == "--seccomp";
    if (descriptor && i + 1 < words.size()) out.push_back(slot_name(plan.slots.at(std::stoul(words[++i]))));
    if (words[i] == "--symlink" && i + 1 < words.size()) out.push_back(printable(words[++i]));
  }
  return out;
}

// How many words of `options` belong to the one at `at`.
std::size_t option_length(const std::vector<std::string>& options, std::size_t at) {
  if (options[at] == "--symlink") return std::min<std::size_t>(3, options.size() - at);
  std::size_t length = 1;
  while (at + length < options.size() && !options[at + length].starts_with("--")) ++length;
  return length;
}

// A value that the policy gave may be a secret, and plans get into logs.
std::string shown_variable(const SandboxPlan& plan, const std::string& variable) {
  const std::string name = variable.substr(0, variable.find('='));
  const bool is_private = std::ranges::find(plan.private_variables, name) != plan.private_variables.end();
  return printable(is_private ? name + "=(from the policy)" : variable);
}

std::vector<std::pair<const char*, Json>> cgroup_limits(const policy::GroupLimits& limits) {
  std::vector<std::pair<const char*, Json>> out;
  const auto add = [&](const char* key, const auto& value) {
    if (value) out.emplace_back(key, *value);
  };
  add("memory", limits.memory);
  add("swap", limits.swap);
  add("cpus", limits.cpus);
  add("pids", limits.pids);
  add("io_read", limits.io_read);
  add("io_write", limits.io_write);
  return out;
}

std::string way_words(const CgroupPlan& plan) {
  return plan.way == CgroupFacts::Way::systemd ? "a scope of systemd" : "a control group in " + printable(plan.parent);
}

std::string seccomp_line(const policy::Seccomp& seccomp) {
  std::string line = seccomp.base == policy::SeccompBase::file ? "file " + printable(seccomp.file)
                     : seccomp.base == policy::SeccompBase::strict ? "strict" : "default";
  if (seccomp.unsafe_ptrace) line += ", unsafe_ptrace";
  return line;
}

}  // namespace

std::string dump_text(const SandboxPlan& plan, const std::vector<std::string>& seccomp_rows) {
  std::string out = "root: " + std::string(plan.root == RootKind::tmpfs ? "tmpfs, read-only" : "private directory") + "\n";
  out += "workspace: " + printable(plan.workspace) + "\nhome: " + printable(plan.home) + "\ncwd: " + printable(plan.cwd) + "\n";
  if (plan.host_ids) {
    out += "host user: " + std::to_string(plan.host_ids->first) + ":" + std::to_string(plan.host_ids->second) + "\n";
  }
  out += "bwrap: " + printable(plan.bwrap) + "\n";
  const auto options = named_options(plan);
  for (std::size_t i = 0; i < options.size();) {
    out += " ";
    for (std::size_t n = option_length(options, i); n > 0; --n) out += " " + options[i++];
    out += "\n";
  }
  for (const auto& socket : plan.hidden_sockets) out += "hidden socket: " + printable(socket.path) + "\n";
  if (plan.etc) {
    out += "etc:\n";
    for (const auto& name : plan.etc->copied) out += "  copy " + printable(name) + "\n";
    for (const auto& [name, text] : plan.etc->made) out += "  make " + printable(name) + " \"" + printable(text) + "\"\n";
    for (const auto& [name, target] : plan.etc->links) out += "  link " + printable(name) + " -> " + printable(target) + "\n";
    for (const auto& name : plan.etc->directories) out += "  empty directory " + printable(name) + "\n";
    for (const auto& name : plan.etc->files) out += "  empty file " + printable(name) + "\n";
  }
  out += "environment:\n";
  for (const auto& variable : plan.environment) out += "  " + shown_variable(plan, variable) + "\n";
  out += "seccomp: " + seccomp_line(plan.seccomp) + "\n";
  for (const auto& row : seccomp_rows) out += "  " + printable(row) + "\n";
  out += "network: " + std::string(plan.network ? "allowlist" : "none") + "\n";
  if (plan.network) {
    for (const auto& rule : plan.network->rules) out += "  " + rule + "\n";
    for (const auto& port : plan.network->publish) out += "  publish " + text(port) + "\n";
  }
  out += "limits:\n";
  if (plan.open_files != 0) out += "  open_files " + std::to_string(plan.open_files) + "\n";
  if (plan.file_size != 0) out += "  file_size " + std::to_string(plan.file_size) + "\n";
  if (plan.log_size != kDefaultLogBytes) out += "  log_size " + std::to_string(plan.log_size) + "\n";
  if (plan.wall_time_ms != 0) out += "  wall_time_ms " + std::to_string(plan.wall_time_ms) + "\n";
  if (plan.cgroup) {
    for (const auto& [key, value] : cgroup_limits(plan.cgroup->limits)) out += std::string("  ") + key + " " + value.dump() + "\n";
    out += std::string("  enforced by ") + way_words(*plan.cgroup) + "\n";
  }
  for (const auto& key : plan.degraded) out += "degraded: " + key + "\n";
  return out;
}

std::string dump_json(const SandboxPlan& plan, const std::vector<std::string>& seccomp_rows) {
  Json out;
  out["version"] = 1;
  out["root"] = plan.root == RootKind::tmpfs ? "tmpfs" : "private_directory";
  out["workspace"] = printable(plan.workspace);
  out["home"] = printable(plan.home);
  out["cwd"] = printable(plan.cwd);
  if (plan.host_ids) out["host_user"] = {plan.host_ids->first, plan.host_ids->second};
  Json argv = Json::array({printable(plan.bwrap)});
  for (const auto& word : named_options(plan)) argv.push_back(word);
  argv.push_back("--");
  argv.push_back(kAgentPath);
  out["bwrap"] = std::move(argv);
  out["hidden_sockets"] = Json::array();
  for (const auto& socket : plan.hidden_sockets) out["hidden_sockets"].push_back(printable(socket.path));
  if (plan.etc) {
    Json etc{{"copied", plan.etc->copied}, {"directories", plan.etc->directories}, {"files", plan.etc->files}};
    etc["made"] = etc["links"] = Json::object();
    for (const auto& [name, text] : plan.etc->made) etc["made"][printable(name)] = printable(text);
    for (const auto& [name, target] : plan.etc->links) etc["links"][printable(name)] = printable(target);
    out["etc"] = std::move(etc);
  }
  Json environment = Json::array();
  for (const auto& variable : plan.environment) environment.push_back(shown_variable(plan, variable));
  out["environment"] = std::move(environment);
  out["seccomp"] = {{"policy", seccomp_line(plan.seccomp)}};
  if (!seccomp_rows.empty()) out["seccomp"]["rows"] = seccomp_rows;
  out["network"] = {{"mode", plan.network ? "allowlist" : "none"}};
  if (plan.network) {
    out["network"]["rules"] = plan.network->rules;
    out["network"]["publish"] = Json::array();
    for (const auto& port : plan.network->publish) out["network"]["publish"].push_back(text(port));
  }
  Json limits = Json::object();
  if (plan.open_files != 0) limits["open_files"] = plan.open_files;
  if (plan.file_size != 0) limits["file_size"] = plan.file_size;
  if (plan.log_size != kDefaultLogBytes) limits["log_size"] = plan.log_size;
  if (plan.wall_time_ms != 0) limits["wall_time_ms"] = plan.wall_time_ms;
  if (plan.cgroup) {
    for (const auto& [key, value] : cgroup_limits(plan.cgroup->limits)) limits[key] = value;
    limits["enforced_by"] = way_words(*plan.cgroup);
  }
  out["limits"] = std::move(limits);
  out["degraded"] = plan.degraded;
  return out.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace sandy::plan
