#include "session/wire/configuration.h"

#include <algorithm>

namespace sandy::wire {
namespace {

std::string_view name_of(std::string_view variable) { return variable.substr(0, variable.find('=')); }

}  // namespace

Result<Configuration> parse_configuration(const Frame& frame) {
  const auto cut = frame.cut();
  const std::uint64_t names = frame.number("root_names", kMaxArgs + 1);
  const std::uint64_t variables = frame.number("environment", kMaxArgs + 1);
  if (frame.op() != "configure" || !cut || cut->args.size() < 4 || names > kMaxArgs || variables > kMaxArgs ||
      cut->args.size() != 4 + names + variables) {
    return fail("configure", "not a configuration frame");
  }
  if (frame.number("version", 0) != kProtocolVersion) return fail("configure", "another protocol version");
  Configuration out;
  out.workspace = cut->args[0];
  out.home = cut->args[1];
  out.cwd = cut->args[2];
  out.shell = cut->args[3];
  for (std::size_t i = 0; i < names; ++i) out.root_names.emplace_back(cut->args[4 + i]);
  for (std::size_t i = 0; i < variables; ++i) out.environment.emplace_back(cut->args[4 + names + i]);
  out.workspace_names = frame.flag("workspace_names", false);
  out.open_files = frame.number("open_files", 0);
  out.file_size = frame.number("file_size", 0);
  out.watched_memory = frame.number("watched_memory", 0);
  out.watched_pids = frame.number("watched_pids", 0);
  out.command_groups = frame.flag("command_groups", false);
  out.one_command = frame.flag("one_command", false);
  return out;
}

Frame encode_configuration(const Configuration& configuration) {
  Frame frame;
  Json lengths = Json::array();
  auto add = [&](const std::string& text) {
    lengths.push_back(text.size());
    frame.payload += text;
  };
  for (const auto* text : {&configuration.workspace, &configuration.home, &configuration.cwd, &configuration.shell}) add(*text);
  for (const auto& name : configuration.root_names) add(name);
  for (const auto& variable : configuration.environment) add(variable);
  frame.header = {{"id", 0},
                  {"op", "configure"},
                  {"version", kProtocolVersion},
                  {"args", std::move(lengths)},
                  {"root_names", configuration.root_names.size()},
                  {"environment", configuration.environment.size()},
                  {"workspace_names", configuration.workspace_names},
                  {"open_files", configuration.open_files},
                  {"file_size", configuration.file_size},
                  {"watched_memory", configuration.watched_memory},
                  {"watched_pids", configuration.watched_pids},
                  {"command_groups", configuration.command_groups},
                  {"one_command", configuration.one_command}};
  return frame;
}

std::vector<std::string> merge_environment(const std::vector<std::string>& base, const std::vector<std::string>& changes) {
  std::vector<std::string> out = base;
  for (const auto& change : changes) {
    const auto same = std::ranges::find(out, name_of(change), [](const std::string& v) { return name_of(v); });
    if (same != out.end()) {
      *same = change;
    } else {
      out.push_back(change);
    }
  }
  return out;
}

}  // namespace sandy::wire
