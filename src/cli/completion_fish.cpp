#include <string_view>

#include "cli/completion_model.h"

namespace sandy::cli {
namespace {

constexpr std::string_view kHead = R"fish(# Completion of sandy for fish, made by `sandy completion fish`.

# Finds out where the cursor is: the verb, how many words came behind it, and the command's words where one has begun. Once for each line.
function __sandy_look
    set -l tokens (commandline -opc)
    if set -q __sandy_line; and test "$__sandy_line" = "$tokens"
        return
    end
    set -g __sandy_line $tokens
    set -g __sandy_program $tokens[1]
    set -g __sandy_verb ''
    set -g __sandy_positional 0
    set -g __sandy_ended
    set -g __sandy_command
    set -l skip 0
    set -l dashes
    for token in $tokens[2..-1]
        if test (count $__sandy_command) -gt 0
            set -a __sandy_command $token
        else if test $skip = 1
            set skip 0
        else if test -z "$dashes"; and test "$token" = --
            set -g __sandy_ended 1
            set dashes 1
        else if test -z "$__sandy_ended"; and string match -q -- '-*' $token; and test "$token" != -
            if contains -- "$__sandy_verb $token" $__sandy_valued
                set skip 1
            end
        else if contains -- (string trim -- "$__sandy_verb $token") $__sandy_verbs
            set -g __sandy_verb (string trim -- "$__sandy_verb $token")
        else if contains -- "$__sandy_verb $__sandy_positional" $__sandy_commands
            set -g __sandy_command $token
        else
            set -g __sandy_positional (math $__sandy_positional + 1)
            if contains -- "$__sandy_verb" $__sandy_strict
                set -g __sandy_ended 1
            end
        end
    end
end

# Options of this verb can come.
function __sandy_options
    __sandy_look
    test "$__sandy_verb" = "$argv[1]"; and test -z "$__sandy_ended"; and test (count $__sandy_command) = 0
end

# The word at the cursor is this one of the verb's arguments.
function __sandy_at
    __sandy_look
    test "$__sandy_verb" = "$argv[1]"; and test (count $__sandy_command) = 0; and begin
        test "$argv[2]" = '*'; or test "$__sandy_positional" = "$argv[2]"
    end
end

# The word at the cursor is a command's.
function __sandy_in_command
    __sandy_look
    test (count $__sandy_command) -gt 0; or contains -- "$__sandy_verb $__sandy_positional" $__sandy_commands
end

# The command's own completion.
function __sandy_complete_command
    set -l words
    for word in $__sandy_command
        set -a words (string escape -- $word)
    end
    set -l line (string join ' ' -- $words (commandline -ct))
    test -z "$line"; or complete "-C$line"
end

function __sandy_policies
    $__sandy_program policy list --quiet 2>/dev/null
end

# By name where there is one; an id that is typed is completed too.
function __sandy_sandboxes
    begin
        $__sandy_program ps --names $argv 2>/dev/null
        test -z (commandline -ct); or $__sandy_program ps --quiet $argv 2>/dev/null
    end
end

complete -c sandy -e
complete -c sandy -f
complete -c sandy -n __sandy_in_command -k -a '(__sandy_complete_command)'
)fish";

std::string in_quotes(std::string_view text) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') out += '\\';
    out += c;
  }
  return out + "'";
}

// `complete`'s options for a value of these kinds.
std::string value_of(const ValueKinds& kinds) {
  std::string words;
  const auto add = [&](bool has, const std::string& text) {
    if (has) words += (words.empty() ? "" : " ") + text;
  };
  for (const auto& word : kinds.words) add(true, word);
  add(kinds.policy, "(__sandy_policies)");
  add(kinds.running, "(__sandy_sandboxes)");
  add(kinds.kept, "(__sandy_sandboxes --all)");
  add(kinds.directory && !kinds.file, "(__fish_complete_directories)");
  return (words.empty() ? "" : " -a " + in_quotes(words)) + (kinds.file ? " -F" : "");
}

std::string list_of(const std::string& name, const std::string& items) { return "set -g " + name + items + "\n"; }

}  // namespace

std::string fish_completion(const VerbModel& root) {
  std::string verbs, valued, commands, strict, rules;
  for (const auto& [path, verb] : all_verbs(root)) {
    if (!path.empty()) verbs += " " + in_quotes(path);
    if (verb->positionals_at_end) strict += " " + in_quotes(path);
    for (const auto& below : verb->verbs) rules += "complete -c sandy -n " + in_quotes("__sandy_at '" + path + "' 0") + " -a " + below.name + " -d " + in_quotes(below.description) + "\n";
    for (const auto& option : verb->options) {
      rules += "complete -c sandy -n " + in_quotes("__sandy_options '" + path + "'");
      for (const auto& name : option.names) {
        rules += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
        if (option.takes_value) valued += " " + in_quotes(path + " " + name);
      }
      rules += (!option.takes_value ? "" : (option.kinds.file ? " -r" : " -x") + value_of(option.kinds)) + " -d " + in_quotes(option.description) + "\n";
    }
    for (std::size_t i = 0; i < verb->positionals.size(); ++i) {
      const auto& positional = verb->positionals[i];
      if (positional.kinds.command) {
        commands += " " + in_quotes(path + " " + std::to_string(i));
      } else if (const std::string value = value_of(positional.kinds); !value.empty()) {
        rules += "complete -c sandy -n " + in_quotes("__sandy_at '" + path + "' '" + (positional.repeats ? "*" : std::to_string(i)) + "'") + value + " -d " + in_quotes(positional.description) + "\n";
      }
    }
  }
  return std::string(kHead) + "\n# Tables: what `sandy` takes.\n\n" + list_of("__sandy_verbs", verbs) + list_of("__sandy_valued", valued) + list_of("__sandy_commands", commands) + list_of("__sandy_strict", strict) +
         "\n" + rules;
}

}  // namespace sandy::cli
