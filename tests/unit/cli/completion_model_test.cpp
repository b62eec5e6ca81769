#include "cli/completion_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sandy::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

class CompletionModel : public ::testing::Test {
 protected:
  CompletionModel() : app("about", "sandy") {
    auto* run = app.add_subcommand("run", "it's [odd]: a \\ verb");
    run->add_option("-p,--policy", text_, "A policy")->type_name("POLICY|FILE");
    run->add_option("--read", list_, "Paths")->type_name("PATH")->allow_extra_args(false);
    run->add_option("--when", text_, "When")->type_name("auto|always|FILE");
    run->add_flag("-q,--quiet", flag_, "Quiet");
    run->add_flag("--secret", flag_, "Hidden")->group("");
    run->add_option("command", list_, "Command")->type_name("CMD...");
    run->positionals_at_end();
    app.add_subcommand("rm", "Remove")->add_option("sandbox", list_, "Ids")->type_name("ID...");
    app.add_subcommand("logs", "Logs")->add_option("sandbox", text_, "Id")->type_name("ID");
    app.add_subcommand("create", "Create")->add_option("--resume", text_, "Id")->type_name("ID");
    auto* policy = app.add_subcommand("policy", "Policies");
    policy->add_subcommand("show", "One")->add_option("name", text_, "Name")->type_name("POLICY");
    app.add_subcommand("serve", "For programs")->group("");
  }

  CLI::App app;

 private:
  std::string text_;
  std::vector<std::string> list_;
  bool flag_ = false;
};

const OptionModel& option(const VerbModel& verb, const std::string& name) {
  for (const auto& one : verb.options) {
    if (std::ranges::find(one.names, name) != one.names.end()) return one;
  }
  throw std::out_of_range(name);
}

TEST_F(CompletionModel, IsWhatHelpShows) {
  const VerbModel model = model_of(app);
  std::vector<std::string> paths;
  for (const auto& [path, verb] : all_verbs(model)) paths.push_back(path);
  EXPECT_THAT(paths, ElementsAre("", "run", "rm", "logs", "create", "policy", "policy show"));
  const VerbModel& run = model.verbs[0];
  std::vector<std::string> names;
  for (const auto& one : run.options) names.insert(names.end(), one.names.begin(), one.names.end());
  EXPECT_THAT(names, ElementsAre("-h", "--help", "-p", "--policy", "--read", "--when", "-q", "--quiet"));
  EXPECT_TRUE(run.positionals_at_end);
  EXPECT_FALSE(option(run, "-q").takes_value);
  EXPECT_TRUE(option(run, "--policy").takes_value);
  EXPECT_FALSE(option(run, "--policy").repeatable);
  EXPECT_TRUE(option(run, "--read").repeatable);
}

TEST_F(CompletionModel, ATypesNameSaysWhatStandsForIt) {
  const VerbModel model = model_of(app);
  const VerbModel& run = model.verbs[0];
  EXPECT_TRUE(option(run, "-p").kinds.policy && option(run, "-p").kinds.file);
  EXPECT_THAT(option(run, "--when").kinds.words, ElementsAre("auto", "always"));
  EXPECT_TRUE(option(run, "--when").kinds.file);
  EXPECT_TRUE(run.positionals[0].kinds.command);
  EXPECT_TRUE(model.verbs[1].positionals[0].kinds.kept && model.verbs[1].positionals[0].repeats);
  EXPECT_TRUE(model.verbs[2].positionals[0].kinds.running && !model.verbs[2].positionals[0].repeats);
  EXPECT_TRUE(option(model.verbs[3], "--resume").kinds.kept);
}

TEST_F(CompletionModel, ScriptsQuoteWhatDescriptionsSay) {
  const VerbModel model = model_of(app);
  EXPECT_THAT(zsh_completion(model), HasSubstr(R"('run:it'\''s [odd]: a \\ verb')"));
  EXPECT_THAT(fish_completion(model), HasSubstr(R"(-d 'it\'s [odd]: a \\ verb')"));
  for (const auto& script : {bash_completion(model), zsh_completion(model), fish_completion(model)}) {
    EXPECT_THAT(script, HasSubstr("policy"));
    EXPECT_THAT(script, Not(HasSubstr("serve")));
    EXPECT_THAT(script, Not(HasSubstr("secret")));
  }
}

}  // namespace
}  // namespace sandy::cli
