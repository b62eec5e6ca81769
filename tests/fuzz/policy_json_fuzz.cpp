// links: sandy_policy sandy_base
// Policy files: whatever the reader and validate() accept is written as JSON that they accept
// again, with the same meaning.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "policy/json_reader.h"
#include "policy/json_writer.h"
#include "policy/validate.h"
#include "policy/weakening.h"

namespace {

using namespace sandy;

[[noreturn]] void broken(const char* property, const std::string& detail) {
  std::fprintf(stderr, "%s: %s\n", property, detail.c_str());
  std::abort();
}

// Errors are printed by others as they are.
void check_error(const Error& error) {
  if (error.what.empty() || error.why.empty()) broken("an error without what or why", error.text());
  for (const std::string* part : {&error.what, &error.why, &error.fix}) {
    if (printable(*part) != *part) broken("an error that is not printable", printable(*part));
    if (part->size() > 1024 * 16) broken("an error that is too long", std::to_string(part->size()));
  }
}

policy::PolicyFields without_keys(policy::PolicyFields fields) {
  for (policy::PathRule& rule : fields.filesystem.rules) rule.key.clear();
  return fields;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(data, data + size);
  const policy::Caller caller{"/home/user", "/home/user/project", "/home/user/.local/state/sandy",
                              1000};
  const auto draft = policy::read_policy(text);
  if (!draft) {
    check_error(draft.error());
    return 0;
  }
  const auto first = policy::validate(*draft, caller);
  if (!first) {
    check_error(first.error());
    return 0;
  }
  const std::string json = policy::to_json(*first);
  const auto again = policy::read_policy(json);
  if (!again) broken("the writer's text is not readable", again.error().text());
  const auto second = policy::validate(*again, caller);
  if (!second) broken("the writer's text is not valid", second.error().text());
  if (without_keys(first->fields()) != without_keys(second->fields()))
    broken("the meaning changed", json);
  if (policy::to_json(*second) != json) broken("the text changed", json);
  for (const auto& weakening : policy::weakenings(*first)) {
    if (printable(weakening.sentence) != weakening.sentence)
      broken("not printable", printable(weakening.sentence));
  }
  return 0;
}
