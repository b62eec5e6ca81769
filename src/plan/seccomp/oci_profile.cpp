#include "plan/seccomp/oci_profile.h"

#include <algorithm>
#include <charconv>

#include "plan/seccomp/policy_parse.h"
#include "plan/seccomp/json_fields.h"
#include "plan/seccomp/symbols.h"

namespace sandy::seccomp {
namespace {

using nlohmann::json;

struct OpWord {
  std::string_view word;
  Op op;
};
constexpr OpWord kOpWords[] = {
    {"SCMP_CMP_EQ", Op::equal},
    {"SCMP_CMP_NE", Op::not_equal},
    {"SCMP_CMP_LT", Op::less},
    {"SCMP_CMP_LE", Op::less_equal},
    {"SCMP_CMP_GT", Op::greater},
    {"SCMP_CMP_GE", Op::greater_equal},
    {"SCMP_CMP_MASKED_EQ", Op::masked_equal},
};

// null stands for absent in profiles that Go programs wrote.
bool present(const json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && !found->is_null();
}

Result<int> errno_at(const json& object, const std::string& where, const char* number_key,
                     const char* name_key) {
  std::optional<int> number;
  if (present(object, number_key)) {
    const auto given = number_at(object, where, number_key, 4095);
    if (!given) return std::unexpected(given.error());
    if (*given == 0)
      return fail(where + "." + number_key, "0 would pretend success for a call that did not run");
    number = static_cast<int>(*given);
  }
  if (present(object, name_key)) {
    const auto name = string_at(object, where, name_key, 32);
    if (!name) return std::unexpected(name.error());
    if (!name->empty()) {
      const auto named = errno_from_name(*name);
      if (!named)
        return fail(where + "." + name_key, "\"" + excerpt(*name) + "\" is no errno name");
      if (number && *number != *named) {
        return fail(where, std::string(number_key) + " and " + name_key + " contradict each other");
      }
      number = named;
    }
  }
  return number.value_or(EPERM);  // runtime-spec: the default is EPERM
}

Result<Action> action_from(const json& object, const std::string& where, const char* key,
                           const char* number_key, const char* name_key) {
  const auto word = string_at(object, where, key, 64);
  if (!word) return std::unexpected(word.error());
  const auto error_number = errno_at(object, where, number_key, name_key);
  if (!error_number) return std::unexpected(error_number.error());
  if (*word == "SCMP_ACT_ALLOW") return Action{ActionKind::allow};
  if (*word == "SCMP_ACT_LOG") return Action{ActionKind::log};
  if (*word == "SCMP_ACT_ERRNO") return Action{ActionKind::errno_, *error_number};
  if (*word == "SCMP_ACT_TRAP") return Action{ActionKind::trap};
  if (*word == "SCMP_ACT_KILL" || *word == "SCMP_ACT_KILL_THREAD")
    return Action{ActionKind::kill_thread};
  if (*word == "SCMP_ACT_KILL_PROCESS") return Action{ActionKind::kill_process};
  if (*word == "SCMP_ACT_TRACE" || *word == "SCMP_ACT_NOTIFY") {
    return fail(where + "." + key,
                *word + " needs a supervisor outside the sandbox, which there is none of");
  }
  return fail(where + "." + key, "\"" + excerpt(*word) + "\" is no action");
}

// Whether `when` of a row's includes or excludes holds; empty where the machine would have to be
// asked.
struct Conditions {
  bool needs_capability = false;
  std::optional<std::array<bool, 2>> arches;
  std::optional<KernelVersion> kernel;
};

Result<KernelVersion> kernel_from(const std::string& text, const std::string& where) {
  KernelVersion version{};
  const char* end = text.data() + text.size();
  const auto [dot, first] = std::from_chars(text.data(), end, version.major);
  if (first == std::errc{} && dot != end && *dot == '.') {
    const auto [rest, second] = std::from_chars(dot + 1, end, version.minor);
    if (second == std::errc{} && rest == end) return version;
  }
  return fail(where, "\"" + excerpt(text) + "\" is no kernel version", "write it as 5.10");
}

Result<Conditions> conditions_at(const json& row, const std::string& row_where, const char* key) {
  Conditions out;
  if (!present(row, key)) return out;
  const std::string where = row_where + "." + key;
  const json& object = row.at(key);
  if (const auto keys = check_keys(object, where, {"caps", "arches", "minKernel"}); !keys) {
    return std::unexpected(keys.error());
  }
  if (present(object, "caps")) {
    const auto caps = array_at(object, where, "caps", 64);
    if (!caps) return std::unexpected(caps.error());
    for (const json& cap : **caps) {
      if (!cap.is_string()) return fail(where + ".caps", "must list strings");
    }
    out.needs_capability = !(*caps)->empty();
  }
  if (present(object, "arches")) {
    const auto arches = array_at(object, where, "arches", 64);
    if (!arches) return std::unexpected(arches.error());
    if (!(*arches)->empty()) out.arches = std::array<bool, 2>{false, false};
    for (const json& item : **arches) {
      if (!item.is_string()) return fail(where + ".arches", "must list strings");
      if (const auto arch = arch_from_name(item.get_ref<const std::string&>())) {
        (*out.arches)[static_cast<std::size_t>(*arch)] = true;
      }
    }
  }
  if (present(object, "minKernel")) {
    const auto text = string_at(object, where, "minKernel", 32);
    if (!text) return std::unexpected(text.error());
    if (!text->empty()) {
      const auto kernel = kernel_from(*text, where + ".minKernel");
      if (!kernel) return std::unexpected(kernel.error());
      out.kernel = *kernel;
    }
  }
  return out;
}

Result<ArgTest> test_from(const json& object, const std::string& where) {
  if (const auto keys = check_keys(object, where, {"index", "value", "valueTwo", "op"}); !keys) {
    return std::unexpected(keys.error());
  }
  const auto index = number_at(object, where, "index", 5);
  if (!index) return std::unexpected(index.error());
  const auto value = number_at(object, where, "value", ~std::uint64_t{0});
  if (!value) return std::unexpected(value.error());
  std::uint64_t second = 0;
  if (present(object, "valueTwo")) {
    const auto given = number_at(object, where, "valueTwo", ~std::uint64_t{0});
    if (!given) return std::unexpected(given.error());
    second = *given;
  }
  const auto word = string_at(object, where, "op", 32);
  if (!word) return std::unexpected(word.error());
  const auto* op = std::ranges::find(kOpWords, *word, &OpWord::word);
  if (op == std::end(kOpWords))
    return fail(where + ".op", "\"" + excerpt(*word) + "\" is no operator");

  ArgTest test;
  test.arg = static_cast<unsigned>(*index);
  test.op = op->op;
  if (test.op == Op::masked_equal) {  // value is the mask, valueTwo what must remain
    test.mask = {*value, ""};
    test.values = {{second, ""}};
  } else {
    test.values = {{*value, ""}};
  }
  if (const auto sane = check_test(test); !sane) {
    Error error = sane.error();
    error.what = where;
    return std::unexpected(std::move(error));
  }
  return test;
}

Result<void> read_tests(const json& object, const std::string& where, Row& row) {
  if (!present(object, "args")) return {};
  const auto tests = array_at(object, where, "args", kMaxTests);
  if (!tests) return std::unexpected(tests.error());
  for (std::size_t i = 0; i < (*tests)->size(); ++i) {
    const std::string here = where + ".args[" + std::to_string(i) + "]";
    auto test = test_from((**tests)[i], here);
    if (!test) return std::unexpected(test.error());
    if (std::ranges::find(row.when, test->arg, &ArgTest::arg) != row.when.end()) {
      return fail(here,
                  "tests argument " + std::to_string(test->arg) +
                      " a second time, which runtimes read as \"or\"",
                  "write one row for each alternative");
    }
    row.when.push_back(std::move(*test));
  }
  return {};
}

Result<std::vector<std::string>> names_at(const json& object, const std::string& where) {
  std::vector<std::string> names;
  if (present(object, "name") == present(object, "names"))
    return fail(where, "must have \"names\" (or one \"name\")");
  if (present(object, "name")) {
    const auto name = string_at(object, where, "name", 64);
    if (!name) return std::unexpected(name.error());
    return std::vector{*name};
  }
  const auto list = array_at(object, where, "names", kMaxNamesPerRow);
  if (!list) return std::unexpected(list.error());
  for (const json& name : **list) {
    if (!name.is_string() || name.get_ref<const std::string&>().size() > 64) {
      return fail(where + ".names", "must list names of at most 64 bytes");
    }
    names.push_back(name.get<std::string>());
  }
  return names;
}

// Narrows `row` to where its conditions hold. False: it holds nowhere.
bool apply(const Conditions& includes, const Conditions& excludes, Row& row) {
  if (includes.needs_capability) return false;
  const auto unknown = [](const Conditions& c) { return c.kernel && *c.kernel > kMinimumKernel; };
  if (row.action.permits() && (unknown(includes) || unknown(excludes))) return false;
  if (excludes.kernel && !unknown(excludes)) return false;
  for (std::size_t i = 0; i < row.arches.size(); ++i) {
    if (includes.arches && !(*includes.arches)[i]) row.arches[i] = false;
    if (excludes.arches && (*excludes.arches)[i]) row.arches[i] = false;
  }
  return row.arches[0] || row.arches[1];
}

Result<std::optional<Row>> row_from(const json& object, const std::string& where,
                                    const Policy& policy) {
  if (const auto keys = check_keys(object, where,
                                   {"name", "names", "action", "errnoRet", "errno", "args",
                                    "comment", "includes", "excludes"});
      !keys) {
    return std::unexpected(keys.error());
  }
  Row row;
  row.origin = where;
  const auto names = names_at(object, where);
  if (!names) return std::unexpected(names.error());
  const auto action = action_from(object, where, "action", "errnoRet", "errno");
  if (!action) return std::unexpected(action.error());
  row.action = *action;
  if (const auto tests = read_tests(object, where, row); !tests)
    return std::unexpected(tests.error());
  if (present(object, "comment")) {
    const auto comment = string_at(object, where, "comment");
    if (!comment) return std::unexpected(comment.error());
    row.reason = *comment;
  }
  const auto includes = conditions_at(object, where, "includes");
  if (!includes) return std::unexpected(includes.error());
  const auto excludes = conditions_at(object, where, "excludes");
  if (!excludes) return std::unexpected(excludes.error());
  if (!apply(*includes, *excludes, row)) return std::nullopt;

  // Runtimes skip a row that only repeats the default, so a row with tests for the same call can
  // still count.
  if (row.when.empty() && row.action == policy.default_action) return std::nullopt;
  for (const std::string& name : *names) {
    if (syscall_known(name)) {
      row.syscalls.push_back(name);
    } else if (!row.action.permits() && policy.default_action.permits()) {
      return fail(
          where + ".names",
          "\"" + excerpt(name) + "\" is no system call known here, and the default permits it");
    }
  }
  if (row.syscalls.empty()) return std::nullopt;
  return row;
}

Result<void> check_ignored(const json& root, const std::string& name) {
  if (present(root, "architectures")) {
    const auto list = array_at(root, name, "architectures", 64);
    if (!list) return std::unexpected(list.error());
    for (const json& item : **list) {
      if (!item.is_string()) return fail(name + ".architectures", "must list strings");
    }
  }
  if (present(root, "archMap")) {
    const auto list = array_at(root, name, "archMap", 64);
    if (!list) return std::unexpected(list.error());
    for (const json& item : **list) {
      if (const auto keys =
              check_keys(item, name + ".archMap", {"architecture", "subArchitectures"});
          !keys)
        return keys;
    }
  }
  if (present(root, "flags")) {
    const auto list = array_at(root, name, "flags", 16);
    if (!list) return std::unexpected(list.error());
    for (const json& flag : **list) {
      // LOG and TSYNC change nothing that is permitted; SPEC_ALLOW and WAIT_KILLABLE_RECV would.
      if (flag == "SECCOMP_FILTER_FLAG_LOG" || flag == "SECCOMP_FILTER_FLAG_TSYNC") continue;
      return fail(name + ".flags",
                  "only SECCOMP_FILTER_FLAG_LOG and SECCOMP_FILTER_FLAG_TSYNC are accepted");
    }
  }
  return {};
}

int strictness(const Row& row) {
  return static_cast<int>(row.action.kind);
}

}  // namespace

Result<Policy> parse_oci_profile(const json& root, const std::string& name) {
  if (const auto keys = check_keys(root, name,
                                   {"defaultAction", "defaultErrnoRet", "defaultErrno",
                                    "architectures", "archMap", "flags", "syscalls"});
      !keys) {
    return std::unexpected(keys.error());
  }
  if (const auto ignored = check_ignored(root, name); !ignored)
    return std::unexpected(ignored.error());
  Policy policy;
  policy.name = name;
  policy.source = Source::oci;
  const auto action = action_from(root, name, "defaultAction", "defaultErrnoRet", "defaultErrno");
  if (!action) return std::unexpected(action.error());
  policy.default_action = *action;
  policy.default_reason = "the profile's defaultAction";
  if (present(root, "syscalls")) {
    const auto rows = array_at(root, name, "syscalls", kMaxRows);
    if (!rows) return std::unexpected(rows.error());
    for (std::size_t i = 0; i < (*rows)->size(); ++i) {
      auto row = row_from((**rows)[i], name + ".syscalls[" + std::to_string(i) + "]", policy);
      if (!row) return std::unexpected(row.error());
      if (*row) policy.rows.push_back(std::move(**row));
    }
  }
  std::ranges::stable_sort(policy.rows, std::greater{}, strictness);
  return policy;
}

}  // namespace sandy::seccomp
