// The command line as a value: what can be written where. Made from CLI11's own definitions, so that a completion script has what the parser has.
#pragma once

#include <CLI/CLI.hpp>

#include <string>
#include <vector>

namespace sandy::cli {

// What stands for a value, by its type's name: "default|strict|FILE" is two words or a file.
struct ValueKinds {
  std::vector<std::string> words;
  bool file = false, directory = false, policy = false;
  bool running = false, kept = false;  // sandboxes: those that run; all that are kept
  bool command = false;                // the words of a command, up to the end
};

struct OptionModel {
  std::vector<std::string> names;  // "-p", "--policy"
  std::string description;
  bool takes_value = false, repeatable = false;
  std::string type;  // "FILE"; "" without a value
  ValueKinds kinds;
};

struct PositionalModel {
  std::string type, description;
  bool repeats = false;
  ValueKinds kinds;
};

struct VerbModel {
  std::string name, description;
  std::vector<OptionModel> options;
  std::vector<PositionalModel> positionals;
  std::vector<VerbModel> verbs;
  bool positionals_at_end = false;  // the first of them ends the options
};

// Without what --help doesn't show.
VerbModel model_of(const CLI::App& app);

// All verbs that have options or arguments of their own, with their words: {"policy show", …}.
struct VerbPath {
  std::string path;  // "run", "policy show"; "" for `sandy` itself
  const VerbModel* verb;
};
std::vector<VerbPath> all_verbs(const VerbModel& root);

// The scripts. Each asks `sandy ps` and `sandy policy list` for names when it runs.
std::string bash_completion(const VerbModel& root);
std::string zsh_completion(const VerbModel& root);
std::string fish_completion(const VerbModel& root);

}  // namespace sandy::cli
