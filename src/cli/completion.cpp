// sandy completion: what makes a shell complete `sandy`.
#include <cstdio>
#include <memory>
#include <string>

#include "cli/completion_model.h"
#include "cli/verbs.h"

namespace sandy::cli {

void add_completion(CLI::App& app, ExitStatus& status) {
  auto* verb = app.add_subcommand("completion", "Print a script that makes a shell complete sandy's verbs and options");
  auto shell = std::make_shared<std::string>();
  verb->add_option("shell", *shell, "Which shell")->required()->type_name("bash|zsh|fish")->check(CLI::IsMember({"bash", "zsh", "fish"}).description(""));
  verb->footer("bash: source <(sandy completion bash), in ~/.bashrc\n"
               "zsh:  source <(sandy completion zsh), in ~/.zshrc after compinit; or as the file _sandy in a directory of $fpath\n"
               "fish: sandy completion fish > ~/.config/fish/completions/sandy.fish");
  verb->callback([&app, shell, &status] {
    const VerbModel model = model_of(app);
    std::fputs((*shell == "bash" ? bash_completion(model) : *shell == "zsh" ? zsh_completion(model) : fish_completion(model)).c_str(), stdout);
    status.value = 0;
  });
}

}  // namespace sandy::cli
