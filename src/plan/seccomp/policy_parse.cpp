#include "plan/seccomp/policy_parse.h"

#include <algorithm>

#include "plan/seccomp/oci_profile.h"
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
    {"equal", Op::equal},
    {"not_equal", Op::not_equal},
    {"less", Op::less},
    {"less_equal", Op::less_equal},
    {"greater", Op::greater},
    {"greater_equal", Op::greater_equal},
    {"masked_equal", Op::masked_equal},
    {"masked_not_equal", Op::masked_not_equal},
};

constexpr std::uint32_t kMaxSyscallNumber = 4095;

// Puts the key in front of an error that was made without one.
std::unexpected<Error> at(const std::string& where, Error error) {
  error.what = where;
  return std::unexpected<Error>(std::move(error));
}

Result<Value> value_from(const json& value, const std::string& where) {
  if (!value.is_string())
    return fail(where, "must be a string: a constant's name, or a number as text");
  const auto& text = value.get_ref<const std::string&>();
  if (text.size() > 1024) return fail(where, "longer than 1024 bytes");
  const auto number = parse_value(text);
  if (!number) return at(where, number.error());
  return Value{*number, text};
}

Result<Action> action_at(const json& object, const std::string& where) {
  const auto text = string_at(object, where, "action", 64);
  if (!text) return std::unexpected(text.error());
  auto action = parse_action(*text);
  if (!action) return at(where + ".action", action.error());
  return action;
}

Result<std::string> reason_at(const json& object, const std::string& where) {
  auto reason = string_at(object, where, "reason");
  if (reason && reason->empty())
    return fail(where + ".reason", "is empty", "say why this verdict is right");
  return reason;
}

Result<ArgTest> test_from(const json& object, const std::string& where) {
  if (const auto keys = check_keys(object, where, {"arg", "op", "bits", "mask", "value", "values"});
      !keys) {
    return std::unexpected(keys.error());
  }
  ArgTest test;
  const auto arg = number_at(object, where, "arg", 5);
  if (!arg) return std::unexpected(arg.error());
  test.arg = static_cast<unsigned>(*arg);

  const auto word = string_at(object, where, "op", 32);
  if (!word) return std::unexpected(word.error());
  const auto* op = std::ranges::find(kOpWords, *word, &OpWord::word);
  if (op == std::end(kOpWords)) {
    return fail(where + ".op", "\"" + excerpt(*word) + "\" is no operator",
                "operators: equal, not_equal, less, less_equal, greater, greater_equal, "
                "masked_equal, masked_not_equal");
  }
  test.op = op->op;

  const auto bits = number_at(object, where, "bits", 64);
  if (!bits) return std::unexpected(bits.error());
  if (*bits != 32 && *bits != 64) return fail(where + ".bits", "must be 32 or 64");
  test.bits = static_cast<unsigned>(*bits);

  const bool masked = test.op == Op::masked_equal || test.op == Op::masked_not_equal;
  if (masked != object.contains("mask")) {
    return fail(where + ".mask",
                masked ? "is missing" : "only masked_equal and masked_not_equal take a mask");
  }
  if (masked) {
    const auto mask = value_from(object.at("mask"), where + ".mask");
    if (!mask) return std::unexpected(mask.error());
    test.mask = *mask;
  }

  if (object.contains("value") == object.contains("values")) {
    return fail(where, "must have either \"value\" or \"values\"");
  }
  if (object.contains("value")) {
    const auto value = value_from(object.at("value"), where + ".value");
    if (!value) return std::unexpected(value.error());
    test.values.push_back(*value);
  } else {
    const auto values = array_at(object, where, "values", kMaxValues);
    if (!values) return std::unexpected(values.error());
    for (std::size_t i = 0; i < (*values)->size(); ++i) {
      const auto value = value_from((**values)[i], where + ".values[" + std::to_string(i) + "]");
      if (!value) return std::unexpected(value.error());
      test.values.push_back(*value);
    }
  }
  if (const auto sane = check_test(test); !sane) return at(where, sane.error());
  return test;
}

Result<std::string> name_from(const json& value, const std::string& where, const Policy& policy) {
  if (!value.is_string()) return fail(where, "must be a string");
  const auto& name = value.get_ref<const std::string&>();
  if (name.size() > 64 || !(syscall_known(name) || policy.numbers.contains(name))) {
    return fail(where, "\"" + excerpt(name) + "\" is no system call known here",
                "for a newer one, give its number under \"numbers\"");
  }
  return name;
}

Result<Row> row_from(const json& object, const std::string& where, const Policy& policy) {
  if (const auto keys =
          check_keys(object, where, {"syscalls", "action", "when", "switch", "arches", "reason"});
      !keys) {
    return std::unexpected(keys.error());
  }
  Row row;
  row.origin = where;
  const auto names = array_at(object, where, "syscalls", kMaxNamesPerRow);
  if (!names) return std::unexpected(names.error());
  if ((*names)->empty()) return fail(where + ".syscalls", "is empty");
  for (std::size_t i = 0; i < (*names)->size(); ++i) {
    const std::string here = where + ".syscalls[" + std::to_string(i) + "]";
    const auto name = name_from((**names)[i], here, policy);
    if (!name) return std::unexpected(name.error());
    if (std::ranges::find(row.syscalls, *name) != row.syscalls.end()) {
      return fail(here, "\"" + *name + "\" stands twice in one row");
    }
    row.syscalls.push_back(*name);
  }

  const auto action = action_at(object, where);
  if (!action) return std::unexpected(action.error());
  row.action = *action;
  const auto reason = reason_at(object, where);
  if (!reason) return std::unexpected(reason.error());
  row.reason = *reason;

  if (object.contains("when")) {
    const auto tests = array_at(object, where, "when", kMaxTests);
    if (!tests) return std::unexpected(tests.error());
    if ((*tests)->empty())
      return fail(where + ".when", "is empty", "leave it out for a row that always holds");
    for (std::size_t i = 0; i < (*tests)->size(); ++i) {
      const auto test = test_from((**tests)[i], where + ".when[" + std::to_string(i) + "]");
      if (!test) return std::unexpected(test.error());
      row.when.push_back(*test);
    }
  }
  if (object.contains("switch")) {
    const auto word = string_at(object, where, "switch", 32);
    if (!word) return std::unexpected(word.error());
    if (*word != "ptrace")
      return fail(where + ".switch", "\"" + excerpt(*word) + "\" is no switch", "switches: ptrace");
    row.needs_ptrace = true;
  }
  if (object.contains("arches")) {
    const auto arches = array_at(object, where, "arches", kArches.size());
    if (!arches) return std::unexpected(arches.error());
    row.arches = {false, false};
    for (const json& item : **arches) {
      const auto arch =
          item.is_string() ? arch_from_name(item.get_ref<const std::string&>()) : std::nullopt;
      if (!arch) return fail(where + ".arches", "must list x86_64, aarch64");
      row.arches[static_cast<std::size_t>(*arch)] = true;
    }
    if (!row.arches[0] && !row.arches[1]) return fail(where + ".arches", "is empty");
  }
  return row;
}

Result<void> read_numbers(const json& object, const std::string& where, Policy& policy) {
  if (!object.is_object() || object.size() > 200)
    return fail(where, "must be an object of at most 200 calls");
  for (const auto& item : object.items()) {
    const std::string here = where + "." + excerpt(item.key());
    if (item.key().empty() || item.key().size() > 64) return fail(here, "a name has 1 to 64 bytes");
    if (const auto keys = check_keys(item.value(), here, {"x86_64", "aarch64"}); !keys) return keys;
    if (item.value().empty()) return fail(here, "gives no number");
    for (const Arch arch : kArches) {
      const std::string key(arch_name(arch));
      if (!item.value().contains(key)) continue;
      const auto number = number_at(item.value(), here, key.c_str(), kMaxSyscallNumber);
      if (!number) return std::unexpected(number.error());
      const auto known = syscall_number(arch, item.key());
      if (known && *known != *number) {
        return fail(here + "." + key,
                    "the number of " + excerpt(item.key()) + " is " + std::to_string(*known));
      }
      policy.numbers[item.key()][static_cast<std::size_t>(arch)] =
          static_cast<std::uint32_t>(*number);
    }
    // A call that libseccomp knows keeps the number it has where the file gives none.
    for (const Arch arch : kArches) {
      auto& number = policy.numbers[item.key()][static_cast<std::size_t>(arch)];
      if (!number) number = syscall_number(arch, item.key());
    }
  }
  return {};
}

// A row that an earlier one of the same file always wins over is a mistake: its author thinks that
// it counts.
Result<void> check_reachable(const Policy& policy, std::size_t own_rows) {
  for (std::size_t later = 0; later < own_rows; ++later) {
    const Row& row = policy.rows[later];
    for (const std::string& name : row.syscalls) {
      for (std::size_t earlier = 0; earlier < later; ++earlier) {
        const Row& first = policy.rows[earlier];
        const bool covers_arches =
            (first.arches[0] || !row.arches[0]) && (first.arches[1] || !row.arches[1]);
        const bool wins = first.when.empty() || first.when == row.when;
        if (!wins || !covers_arches || (first.needs_ptrace && !row.needs_ptrace)) continue;
        if (std::ranges::find(first.syscalls, name) == first.syscalls.end()) continue;
        return fail(row.origin,
                    "can never decide " + name + ": " + first.origin + " always does before it");
      }
    }
  }
  return {};
}

}  // namespace

Result<void> check_test(const ArgTest& test) {
  const bool several = test.op == Op::equal || test.op == Op::not_equal ||
                       test.op == Op::masked_equal || test.op == Op::masked_not_equal;
  if (test.arg > 5) return fail("", "a system call has the arguments 0 to 5");
  if (test.values.empty()) return fail("", "gives no value to compare with");
  if (!several && test.values.size() > 1) return fail("", "this operator compares with one value");
  const bool masked = test.op == Op::masked_equal || test.op == Op::masked_not_equal;
  for (const Value& value : test.values) {
    if (test.bits == 32 && value.number > 0xffffffff)
      return fail("", "the value does not fit 32 bits");
    if (masked && (value.number & ~test.mask.number) != 0) {
      return fail("", "the value has bits outside the mask, so it can never be equal");
    }
  }
  if (masked && test.bits == 32 && test.mask.number > 0xffffffff)
    return fail("", "the mask does not fit 32 bits");
  return {};
}

Result<Policy> parse_sandy_policy(const json& root, const std::string& name) {
  if (const auto keys = check_keys(
          root, name,
          {"version", "description", "extends", "default", "foreign_abi", "numbers", "rows"});
      !keys) {
    return std::unexpected(keys.error());
  }
  const auto version = number_at(root, name, "version", 1000);
  if (!version) return std::unexpected(version.error());
  if (*version != 1) return fail(name + ".version", "must be 1");
  if (root.contains("description")) {
    if (const auto text = string_at(root, name, "description"); !text)
      return std::unexpected(text.error());
  }

  Policy policy;
  policy.name = name;
  const Policy* base = nullptr;
  if (root.contains("extends")) {
    const auto base_name = string_at(root, name, "extends", 64);
    if (!base_name) return std::unexpected(base_name.error());
    const auto found = builtin(*base_name);
    if (!found) return at(name + ".extends", found.error());
    base = *found;
    policy.default_action = base->default_action;
    policy.default_reason = base->default_reason;
    policy.foreign_abi = base->foreign_abi;
    policy.numbers = base->numbers;
  }

  if (root.contains("default") || base == nullptr) {
    const std::string where = name + ".default";
    if (!root.contains("default")) return fail(where, "is missing");
    const json& object = root.at("default");
    if (const auto keys = check_keys(object, where, {"action", "reason"}); !keys)
      return std::unexpected(keys.error());
    const auto action = action_at(object, where);
    if (!action) return std::unexpected(action.error());
    const auto reason = reason_at(object, where);
    if (!reason) return std::unexpected(reason.error());
    policy.default_action = *action;
    policy.default_reason = *reason;
  }
  if (root.contains("foreign_abi")) {
    const std::string where = name + ".foreign_abi";
    const json& object = root.at("foreign_abi");
    if (const auto keys = check_keys(object, where, {"action", "reason"}); !keys)
      return std::unexpected(keys.error());
    const auto action = action_at(object, where);
    if (!action) return std::unexpected(action.error());
    if (const auto reason = reason_at(object, where); !reason)
      return std::unexpected(reason.error());
    if (action->permits()) {
      return fail(where + ".action",
                  "would let i386 and x32 calls past every row: they have numbers of their own");
    }
    policy.foreign_abi = *action;
  }
  if (root.contains("numbers")) {
    if (const auto numbers = read_numbers(root.at("numbers"), name + ".numbers", policy);
        !numbers) {
      return std::unexpected(numbers.error());
    }
  }

  const auto rows = array_at(root, name, "rows", kMaxRows);
  if (!rows) return std::unexpected(rows.error());
  for (std::size_t i = 0; i < (*rows)->size(); ++i) {
    auto row = row_from((**rows)[i], name + ".rows[" + std::to_string(i) + "]", policy);
    if (!row) return std::unexpected(row.error());
    policy.rows.push_back(std::move(*row));
  }
  if (const auto reachable = check_reachable(policy, policy.rows.size()); !reachable) {
    return std::unexpected(reachable.error());
  }
  if (base != nullptr) policy.rows.insert(policy.rows.end(), base->rows.begin(), base->rows.end());
  return policy;
}

Result<Policy> parse_policy(std::string_view text, const std::string& name) {
  const auto root = read_json(text, name);
  if (!root) return std::unexpected(root.error());
  if (!root->is_object()) return fail(name, "must be a JSON object");
  const bool sandy = root->contains("version"), oci = root->contains("defaultAction");
  if (sandy == oci) {
    return fail(
        name,
        sandy
            ? "has both \"version\" and \"defaultAction\", so its kind is not clear"
            : "is neither a Sandy policy (\"version\": 1) nor an OCI profile (\"defaultAction\")");
  }
  return sandy ? parse_sandy_policy(*root, name) : parse_oci_profile(*root, name);
}

}  // namespace sandy::seccomp
