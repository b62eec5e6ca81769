#include "cli/completion_model.h"

#include <algorithm>
#include <string_view>

namespace sandy::cli {
namespace {

bool is_word(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-'; });
}

ValueKinds kinds_of(std::string_view type, std::string_view verb, std::string_view option) {
  ValueKinds out;
  if (type.ends_with("...")) type.remove_suffix(3);
  while (!type.empty()) {
    const auto bar = std::min(type.find('|'), type.size());
    const std::string_view part = type.substr(0, bar);
    type.remove_prefix(std::min(bar + 1, type.size()));
    if (is_word(part)) out.words.emplace_back(part);
    if (part == "FILE" || part == "PATH") out.file = true;
    if (part == "DIR") out.directory = true;
    if (part == "POLICY") out.policy = true;
    if (part == "CMD") out.command = true;
    // What has stopped can be removed and gone on with, and no more.
    if (part == "ID") (verb == "rm" || option == "--resume" ? out.kept : out.running) = true;
  }
  return out;
}

OptionModel option_of(const CLI::Option& option, std::string_view verb) {
  OptionModel out;
  for (const auto& name : option.get_snames()) out.names.push_back("-" + name);
  for (const auto& name : option.get_lnames()) out.names.push_back("--" + name);
  out.description = option.get_description();
  out.takes_value = option.get_type_size() > 0 && option.get_expected_max() > 0;
  out.repeatable = option.get_items_expected_max() > 1;
  if (out.takes_value) {
    out.type = option.get_type_name();
    out.kinds = kinds_of(out.type, verb, out.names.back());
  }
  return out;
}

void collect(const VerbModel& verb, const std::string& path, std::vector<VerbPath>& out) {
  out.push_back({path, &verb});
  for (const VerbModel& below : verb.verbs) collect(below, path.empty() ? below.name : path + " " + below.name, out);
}

}  // namespace

VerbModel model_of(const CLI::App& app) {
  VerbModel out;
  out.name = app.get_name();
  out.description = app.get_description();
  out.positionals_at_end = app.get_positionals_at_end();
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group().empty()) continue;
    if (option->nonpositional()) {
      out.options.push_back(option_of(*option, out.name));
    } else {
      const std::string type = option->get_type_name();
      out.positionals.push_back({type, option->get_description(), option->get_items_expected_max() > 1, kinds_of(type, out.name, "")});
    }
  }
  for (const CLI::App* verb : app.get_subcommands({})) {
    if (!verb->get_group().empty()) out.verbs.push_back(model_of(*verb));
  }
  return out;
}

std::vector<VerbPath> all_verbs(const VerbModel& root) {
  std::vector<VerbPath> out;
  collect(root, "", out);
  return out;
}

}  // namespace sandy::cli
