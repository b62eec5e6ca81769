#include <string_view>

#include "cli/completion_model.h"

namespace sandy::cli {
namespace {

// The fixed part: it finds out what the word at the cursor is, with the tables that follow it.
constexpr std::string_view kHead = R"bash(# Completion of sandy for bash, made by `sandy completion bash`.

# Words that begin as the one at the cursor does.
_sandy_add() {
  local word
  for word; do
    [[ $word != "$cur"* ]] || COMPREPLY+=("$word")
  done
}

_sandy_add_lines() {
  local lines
  mapfile -t lines < <("$program" "$@" 2>/dev/null)
  _sandy_add "${lines[@]}"
}

# By name where there is one; an id that is typed is completed too.
_sandy_add_sandboxes() {
  _sandy_add_lines ps --names "$@"
  ((${#COMPREPLY[@]} > 0)) || _sandy_add_lines ps --quiet "$@"
}

_sandy_add_files() {
  local names
  mapfile -t names < <(compgen "$1" -- "$cur")
  COMPREPLY+=("${names[@]}")
  compopt -o default -o bashdefault -o filenames 2>/dev/null
}

_sandy_add_kinds() {
  local kind
  for kind in $1; do
    case $kind in
      =*) _sandy_add "${kind#=}" ;;
      file) _sandy_add_files -f ;;
      directory) _sandy_add_files -d ;;
      policy) _sandy_add_lines policy list --quiet ;;
      running) _sandy_add_sandboxes ;;
      kept) _sandy_add_sandboxes --all ;;
    esac
  done
}

# The command's own completion, where the package bash-completion is there; else programs, and files.
_sandy_command() {
  compopt -o default -o bashdefault 2>/dev/null
  if declare -F _comp_command_offset >/dev/null; then
    _comp_command_offset "${at[$1]}"
  elif declare -F _command_offset >/dev/null; then
    _command_offset "${at[$1]}"
  elif (($1 == last)); then
    mapfile -t COMPREPLY < <(compgen -c -- "$cur")
  else
    _sandy_add_files -f
  fi
}

_sandy() {
  local IFS=$' \t\n' program=$1 rest=${COMP_LINE:0:COMP_POINT} words=() at=() i word blanks
  COMPREPLY=()
  compopt +o default +o bashdefault 2>/dev/null
  # bash cuts words at "=" and ":" too: what has no blanks between is one word.
  for ((i = 0; i <= COMP_CWORD; i++)); do
    blanks=${rest%%[![:space:]]*}
    rest=${rest#"$blanks"}
    word=${COMP_WORDS[i]}
    ((i < COMP_CWORD)) || word=$rest
    rest=${rest#"$word"}
    if ((i > 0)) && [[ -z $blanks ]]; then
      words[-1]+=$word
    else
      words+=("$word")
      at+=("$i")
    fi
  done

  local last=$((${#words[@]} - 1)) verb= ended= dashes= positional=0 kind verbs options at_end
  local cur=${words[last]} value=
  _sandy_verb "$verb"
  for ((i = 1; i < last; i++)); do
    word=${words[i]}
    if [[ -z $dashes && $word == -- ]]; then
      ended=1 dashes=1
    elif [[ -z $ended && $word == -?* ]]; then
      _sandy_option "$verb" "${word%%=*}"
      [[ $kind != flag && $word != *=* ]] || continue
      ((++i < last)) || value=$kind
    elif [[ -n $verbs ]]; then
      verb+=${verb:+ }$word
      _sandy_verb "$verb"
    else
      _sandy_positional "$verb" "$positional"
      if [[ $kind == command ]]; then
        _sandy_command "$i"
        return
      fi
      ((++positional))
      [[ -z $at_end ]] || ended=1
    fi
  done

  if [[ -n $value ]]; then
    _sandy_add_kinds "$value"
  elif [[ -z $ended && $cur == --*=* ]]; then
    local option=${cur%%=*}
    cur=${cur#*=}
    _sandy_option "$verb" "$option"
    _sandy_add_kinds "$kind"
    [[ $COMP_WORDBREAKS == *=* ]] || COMPREPLY=("${COMPREPLY[@]/#/$option=}")
  elif [[ -z $ended && $cur == -* ]]; then
    _sandy_add $options
  elif [[ -n $verbs ]]; then
    _sandy_add $verbs
  else
    _sandy_positional "$verb" "$positional"
    if [[ $kind == command ]]; then
      _sandy_command "$last"
    else
      _sandy_add_kinds "$kind"
    fi
  fi
  # Of a word with a colon, bash replaces what is behind that.
  if [[ $cur == *:* && $COMP_WORDBREAKS == *:* ]]; then
    word=${cur%"${cur##*:}"}
    COMPREPLY=("${COMPREPLY[@]#"$word"}")
  fi
}
)bash";

std::string words_of(const ValueKinds& kinds) {
  if (kinds.command) return "command";
  std::string out;
  const auto add = [&](bool has, const std::string& word) {
    if (has) out += (out.empty() ? "" : " ") + word;
  };
  for (const auto& word : kinds.words) add(true, "=" + word);
  add(kinds.policy, "policy");
  add(kinds.running, "running");
  add(kinds.kept, "kept");
  add(kinds.file, "file");
  add(kinds.directory, "directory");
  return out.empty() ? "text" : out;
}

}  // namespace

std::string bash_completion(const VerbModel& root) {
  std::string verbs, options, positionals;
  for (const auto& [path, verb] : all_verbs(root)) {
    std::string names, below;
    for (const auto& option : verb->options) {
      for (const auto& name : option.names) {
        names += (names.empty() ? "" : " ") + name;
        if (option.takes_value) options += "    '" + path + " " + name + "') kind='" + words_of(option.kinds) + "' ;;\n";
      }
    }
    for (const auto& one : verb->verbs) below += (below.empty() ? "" : " ") + one.name;
    verbs += "    '" + path + "') verbs='" + below + "' options='" + names + "' at_end=" + (verb->positionals_at_end ? "1" : "") + " ;;\n";
    for (std::size_t i = 0; i < verb->positionals.size(); ++i) {
      const auto& positional = verb->positionals[i];
      positionals += "    '" + path + " '" + (positional.repeats ? "*" : std::to_string(i)) + ") kind='" + words_of(positional.kinds) + "' ;;\n";
    }
  }
  return std::string(kHead) + "\n# Tables: what `sandy` takes.\n\n_sandy_verb() {\n  case $1 in\n" + verbs + "    *) verbs= options= at_end= ;;\n  esac\n}\n\n_sandy_option() {\n  case \"$1 $2\" in\n" + options +
         "    *) kind=flag ;;\n  esac\n}\n\n_sandy_positional() {\n  case \"$1 $2\" in\n" + positionals + "    *) kind=text ;;\n  esac\n}\n\ncomplete -F _sandy sandy\n";
}

}  // namespace sandy::cli
