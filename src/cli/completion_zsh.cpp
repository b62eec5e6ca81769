#include <string_view>

#include "cli/completion_model.h"

namespace sandy::cli {
namespace {

constexpr std::string_view kHead = R"zsh(#compdef sandy
# Completion of sandy for zsh, made by `sandy completion zsh`.

_sandy_sandboxes() {
  local -a names ids
  names=(${(f)"$(_call_program names $program ps --names $1 2>/dev/null)"})
  ids=(${(f)"$(_call_program ids $program ps --quiet $1 2>/dev/null)"})
  # By name where there is one; an id that is typed is completed too.
  _wanted sandboxes expl sandbox compadd -a names || _wanted sandboxes expl sandbox compadd -a ids
}
_sandy_running() { _sandy_sandboxes }
_sandy_kept() { _sandy_sandboxes --all }

_sandy_policies() {
  local -a names
  names=(${(f)"$(_call_program policies $program policy list --quiet 2>/dev/null)"})
  _wanted policies expl policy compadd -a names
}

# The command's own completion.
_sandy_command() {
  [[ $words[1] != -- ]] || { shift words; (( CURRENT-- )) }
  _normal
}
)zsh";

std::string escaped(std::string_view text, std::string_view special) {
  std::string out;
  for (const char c : text) {
    if (c == '\'') {
      out += "'\\''";
      continue;
    }
    if (c == '\\' || special.find(c) != std::string_view::npos) out += '\\';
    out += c;
  }
  return out;
}

std::string action_of(const ValueKinds& kinds) {
  if (kinds.command) return "_sandy_command";
  std::string out;
  const auto add = [&](bool has, std::string_view text) {
    if (has) out += (out.empty() ? "" : "; ") + std::string(text);
  };
  if (!kinds.words.empty()) {
    std::string words;
    for (const auto& word : kinds.words) words += " " + word;
    add(true, "compadd" + words);
  }
  add(kinds.policy, "_sandy_policies");
  add(kinds.running, "_sandy_running");
  add(kinds.kept, "_sandy_kept");
  add(kinds.file, "_files");
  add(kinds.directory, "_files -/");
  return out.empty() ? " " : "{" + out + "}";
}

// _arguments' own words for one option: '(-p --policy)'{-p,--policy=}'[what it does]:FILE:_files'.
std::string spec_of(const OptionModel& option) {
  std::string excluded, out;
  for (const auto& name : option.names) excluded += (excluded.empty() ? "" : " ") + name;
  const std::string tail = "[" + escaped(option.description, "[]:") + "]" + (option.takes_value ? ":" + escaped(option.type, "[]:") + ":" + action_of(option.kinds) : "") + "'";
  for (const auto& name : option.names) {
    out += " \\\n        '" + (option.repeatable ? "*" : "(" + excluded + ")") + name + (option.takes_value && name.starts_with("--") ? "=" : "") + tail;
  }
  return out;
}

std::string function_of(const std::string& path) {
  std::string out = path.empty() ? "_sandy" : "_sandy_verb_" + path;
  for (char& c : out) {
    if (c == ' ' || c == '-') c = '_';
  }
  return out;
}

std::string arguments_of(const std::string& path, const VerbModel& verb) {
  std::string out = function_of(path) + "() {\n";
  if (path.empty()) out += "  local program=$words[1]\n";
  out += "  local curcontext=$curcontext state line expl\n  typeset -A opt_args\n  _arguments -C -S";
  if (verb.positionals_at_end || !verb.verbs.empty()) out += " -A '-*'";
  for (const auto& option : verb.options) out += spec_of(option);
  if (!verb.verbs.empty()) {
    out += " \\\n        '1:verb:->verb' '*::word:->words'\n  case $state in\n    verb)\n      local -a verbs=(";
    for (const auto& below : verb.verbs) out += "\n        '" + escaped(below.name, ":") + ":" + escaped(below.description, "") + "'";
    out += "\n      )\n      _describe -t verbs verb verbs ;;\n    words)\n      case $line[1] in\n";
    for (const auto& below : verb.verbs) out += "        " + below.name + ") " + function_of(path.empty() ? below.name : path + " " + below.name) + " ;;\n";
    return out + "      esac ;;\n  esac\n}\n";
  }
  for (std::size_t i = 0; i < verb.positionals.size(); ++i) {
    const auto& positional = verb.positionals[i];
    // "*:::", with the ":" that follows: the function sees the command's words alone, without those of arguments before it.
    const std::string place = positional.kinds.command ? "*::" : positional.repeats ? "*" : std::to_string(i + 1);
    out += " \\\n        '" + place + ":" + escaped(positional.type, "[]:") + ":" + action_of(positional.kinds) + "'";
  }
  return out + "\n}\n";
}

}  // namespace

std::string zsh_completion(const VerbModel& root) {
  std::string out(kHead);
  for (const auto& [path, verb] : all_verbs(root)) out += "\n" + arguments_of(path, *verb);
  // As a file of $fpath it is the function's body; sourced, it tells compsys of the function.
  return out + "\nif [[ $funcstack[1] = _sandy ]]; then\n  _sandy \"$@\"\nelse\n  compdef _sandy sandy\nfi\n";
}

}  // namespace sandy::cli
