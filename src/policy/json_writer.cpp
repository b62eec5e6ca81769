#include "policy/json_writer.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "policy/base64.h"

namespace sandy::policy {
namespace {

using Json = nlohmann::ordered_json;

// Whether JSON can hold it and a terminal can show it. JSON escapes line ends and tabs.
bool is_printable(std::string text) {
  std::ranges::replace(text, '\n', ' ');
  std::ranges::replace(text, '\t', ' ');
  return printable(text) == text;
}

Json bytes_json(const std::string& bytes) {
  if (is_printable(bytes)) return bytes;
  return Json{{"bytes", base64_encode(bytes)}};
}

// A "*" in a plain string would be refused as a pattern.
Json path_json(const std::string& path) {
  if (path.find('*') == std::string::npos) return bytes_json(path);
  return Json{{"bytes", base64_encode(path)}};
}

Json filesystem_json(const Filesystem& filesystem) {
  Json workspace = Json::object();
  const bool bind = filesystem.workspace.mode == WorkspaceMode::bind;
  workspace["mode"] = bind ? "bind" : "private";
  if (bind) workspace["path"] = path_json(filesystem.workspace.path);
  workspace["mount"] = path_json(filesystem.workspace.mount);
  Json read = Json::array();
  Json write = Json::array();
  Json deny = Json::array();
  for (const PathRule& rule : filesystem.rules) {
    Json& list = rule.access == Access::read ? read : rule.access == Access::write ? write : deny;
    list.push_back(path_json(rule.path));
  }
  Json out = Json::object();
  out["workspace"] = std::move(workspace);
  out["read"] = std::move(read);
  out["write"] = std::move(write);
  out["deny"] = std::move(deny);
  out["unsafe_broad_workspace"] = filesystem.unsafe_broad_workspace;
  return out;
}

Json rule_texts(const std::vector<NetworkRule>& rules) {
  Json out = Json::array();
  for (const auto& rule : rules) out.push_back(rule.text());
  return out;
}

Json network_json(const Network& network) {
  Json out = Json::object();
  out["mode"] = network.mode == NetworkMode::allowlist ? "allowlist" : "none";
  if (network.mode == NetworkMode::allowlist) {
    out["allow"] = rule_texts(network.allow);
    out["deny"] = rule_texts(network.deny);
    out["allow_private"] = rule_texts(network.allow_private);
    if (network.real_dns_answers) out["dns_answers"] = "real";
    Json published = Json::array();
    for (const auto& port : network.publish) published.push_back(text(port));
    out["publish"] = std::move(published);
  }
  return out;
}

Json limits_json(const Limits& limits) {
  Json out = Json::object();
  const auto put = [&](const char* key, const auto& value) {
    if (value) out[key] = *value;
  };
  put("memory", limits.memory);
  put("swap", limits.swap);
  put("cpus", limits.cpus);
  put("pids", limits.pids);
  put("io_read", limits.io_read);
  put("io_write", limits.io_write);
  if (limits.wall_time_ms) out["wall_time"] = std::to_string(*limits.wall_time_ms) + "ms";
  put("open_files", limits.open_files);
  put("file_size", limits.file_size);
  put("tmp_size", limits.tmp_size);
  put("log_size", limits.log_size);
  out["best_effort"] = limits.best_effort;
  return out;
}

Json seccomp_json(const Seccomp& seccomp) {
  Json out = Json::object();
  if (seccomp.base == SeccompBase::file) {
    out["file"] = path_json(seccomp.file);
  } else {
    out["base"] = seccomp.base == SeccompBase::strict ? "strict" : "default";
  }
  out["unsafe_ptrace"] = seccomp.unsafe_ptrace;
  return out;
}

Json environment_json(const Environment& environment) {
  Json set = Json::object();
  for (const auto& [name, value] : environment.set) set[name] = bytes_json(value);
  Json out = Json::object();
  out["pass"] = environment.pass;
  out["set"] = std::move(set);
  return out;
}

Json process_json(const Process& process) {
  Json out = Json::object();
  out["hostname"] = process.hostname;
  if (!process.cwd.empty()) out["cwd"] = path_json(process.cwd);
  out["uid"] = process.uid;
  out["gid"] = process.gid;
  return out;
}

}  // namespace

std::string to_json(const PolicyFields& fields) {
  Json out = Json::object();
  out["version"] = 1;
  if (!fields.description.empty()) out["description"] = fields.description;
  out["filesystem"] = filesystem_json(fields.filesystem);
  out["network"] = network_json(fields.network);
  out["limits"] = limits_json(fields.limits);
  out["seccomp"] = seccomp_json(fields.seccomp);
  out["environment"] = environment_json(fields.environment);
  out["process"] = process_json(fields.process);
  return out.dump(2) + "\n";
}

std::string to_json(const SandboxPolicy& policy) {
  return to_json(policy.fields());
}

}  // namespace sandy::policy
