// sandy policy: the policies that have names.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/verbs.h"
#include "host/named_policy.h"
#include "policy/json_reader.h"
#include "session/planning.h"

namespace sandy::cli {
namespace {

struct ListOptions {
  bool json = false, quiet = false;
};

struct Row {
  std::string name, file, description, error;
};

// A name that can't be used is listed too, with the reason: it hides those of the same name that come after it.
Row row_of(const host::ListedPolicy& listed) {
  Row out{listed.name, listed.path, "", ""};
  const auto draft = listed.text ? policy::read_policy(*listed.text) : std::unexpected(listed.text.error());
  if (draft && draft->description) out.description = draft->description->value;
  if (!draft) out.error = draft.error().text();
  return out;
}

void print_json(const std::vector<Row>& rows) {
  nlohmann::ordered_json out = nlohmann::ordered_json::array();
  for (const Row& row : rows) {
    nlohmann::ordered_json entry{{"name", row.name}, {"file", row.file}, {"description", row.description}};
    if (!row.error.empty()) entry["error"] = row.error;
    out.push_back(std::move(entry));
  }
  std::puts(out.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace).c_str());
}

int list(const ListOptions& options) {
  const auto policies = host::list_policies();
  if (!policies) return print_error(policies.error()), 1;
  if (options.quiet) {
    for (const auto& listed : *policies) std::puts(listed.name.c_str());
    return 0;
  }
  std::vector<Row> rows;
  std::ranges::transform(*policies, std::back_inserter(rows), row_of);
  if (options.json) return print_json(rows), 0;
  for (const Row& row : rows) {
    const std::string words = row.error.empty() ? row.description : "can't be used: " + row.error;
    std::printf(words.empty() ? "%s%s\n" : "%-20s  %s\n", row.name.c_str(), printable(words).c_str());
    std::printf("%-20s  %s\n", "", printable(row.file).c_str());
  }
  if (!rows.empty()) return 0;
  std::string places;
  for (const std::string& place : host::policy_directories()) places += "\n  " + printable(place);
  note("there are no policies with names. Looked in:" + places);
  return 0;
}

int show(const std::string& name) {
  const auto found = host::find_policy(name, session::this_caller().cwd);
  if (!found) return print_error(found.error()), 1;
  // Only what is a policy: JSON has no terminal escapes.
  if (const auto draft = policy::read_policy(found->text); !draft) return print_error({printable(found->path) + ": " + draft.error().what, draft.error().why, draft.error().fix}), 1;
  std::fputs(found->text.c_str(), stdout);
  return 0;
}

}  // namespace

void add_policy(CLI::App& app, ExitStatus& status) {
  auto* verb = app.add_subcommand("policy", "The policies that have names, for --policy NAME");
  verb->require_subcommand(1);
  auto* lists = verb->add_subcommand("list", "Which there are, what each is for, and the file that it is");
  auto options = std::make_shared<ListOptions>();
  lists->add_flag("--quiet,-q", options->quiet, "Names alone");
  lists->add_flag("--json", options->json, "As JSON: an array of objects with name, file, description and, where it can't be used, error");
  lists->callback([options, &status] { status.value = list(*options); });
  auto* shows = verb->add_subcommand("show", "Print one");
  auto name = std::make_shared<std::string>();
  shows->add_option("name", *name, "Its name")->required()->type_name("POLICY");
  shows->callback([name, &status] { status.value = show(*name); });
  verb->footer("Looked for, in this order: $XDG_CONFIG_HOME/sandy/policies (~/.config/sandy/policies), /etc/sandy/policies, and those that came with sandy.\n"
               "Exit status: 0; 1 where there is none of that name, or it can't be used; 2 for wrong arguments.");
}

}  // namespace sandy::cli
