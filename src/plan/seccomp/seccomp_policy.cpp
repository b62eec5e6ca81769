#include "plan/seccomp/seccomp_policy.h"

#include <linux/seccomp.h>

#include <algorithm>
#include <cstdio>

#include "plan/seccomp/symbols.h"

namespace sandy::seccomp {
namespace {

constexpr std::uint64_t kLow32 = 0xffffffff;

struct ActionWord {
  std::string_view word;
  ActionKind kind;
};
constexpr ActionWord kActionWords[] = {
    {"allow", ActionKind::allow},
    {"log", ActionKind::log},
    {"trap", ActionKind::trap},
    {"kill_thread", ActionKind::kill_thread},
    {"kill_process", ActionKind::kill_process},
};

std::string value_text(const Value& value) {
  if (!value.text.empty()) return printable(value.text);
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, "0x%llx", static_cast<unsigned long long>(value.number));
  return buffer;
}

std::string_view op_text(Op op) {
  switch (op) {
    case Op::equal:
    case Op::masked_equal:
      return "==";
    case Op::not_equal:
    case Op::masked_not_equal:
      return "!=";
    case Op::less:
      return "<";
    case Op::less_equal:
      return "<=";
    case Op::greater:
      return ">";
    case Op::greater_equal:
      return ">=";
  }
  return "?";
}

}  // namespace

std::uint32_t Action::bpf_return() const {
  switch (kind) {
    case ActionKind::allow:
      return SECCOMP_RET_ALLOW;
    case ActionKind::log:
      return SECCOMP_RET_LOG;
    case ActionKind::errno_:
      return SECCOMP_RET_ERRNO | (static_cast<std::uint32_t>(error_number) & SECCOMP_RET_DATA);
    case ActionKind::trap:
      return SECCOMP_RET_TRAP;
    case ActionKind::kill_thread:
      return SECCOMP_RET_KILL_THREAD;
    case ActionKind::kill_process:
      break;
  }
  return SECCOMP_RET_KILL_PROCESS;
}

std::string Action::text() const {
  if (kind == ActionKind::errno_) return "errno " + errno_name(error_number);
  const auto* found = std::ranges::find(kActionWords, kind, &ActionWord::kind);
  return std::string(found->word);
}

Result<Action> parse_action(std::string_view text) {
  const auto* found = std::ranges::find(kActionWords, text, &ActionWord::word);
  if (found != std::end(kActionWords)) return Action{found->kind};
  if (text.starts_with("errno ")) {
    if (const auto number = errno_from_name(text.substr(6)))
      return Action{ActionKind::errno_, *number};
    return fail("", "\"" + printable(text.substr(6)) + "\" is no errno name",
                "write it as errno(3) does: EPERM");
  }
  return fail("", "\"" + printable(text) + "\" is no action",
              "actions: allow, log, errno NAME, trap, kill_thread, kill_process");
}

bool ArgTest::holds(const std::array<std::uint64_t, 6>& args) const {
  const std::uint64_t actual = args[arg] & (bits == 32 ? kLow32 : ~std::uint64_t{0});
  const auto any = [&](std::uint64_t applied) {
    return std::ranges::any_of(
        values, [&](const Value& value) { return (actual & applied) == value.number; });
  };
  switch (op) {
    case Op::equal:
      return any(~std::uint64_t{0});
    case Op::not_equal:
      return !any(~std::uint64_t{0});
    case Op::masked_equal:
      return any(mask.number);
    case Op::masked_not_equal:
      return !any(mask.number);
    case Op::less:
      return actual < values[0].number;
    case Op::less_equal:
      return actual <= values[0].number;
    case Op::greater:
      return actual > values[0].number;
    case Op::greater_equal:
      return actual >= values[0].number;
  }
  return false;
}

std::string ArgTest::text() const {
  std::string out = "arg" + std::to_string(arg);
  if (bits == 32) out = "low32(" + out + ")";
  if (op == Op::masked_equal || op == Op::masked_not_equal) out += " & " + value_text(mask);
  out += " " + std::string(op_text(op)) + " ";
  if (values.size() == 1) return out + value_text(values[0]);
  out += (op == Op::equal || op == Op::masked_equal) ? "any of {" : "none of {";
  for (std::size_t i = 0; i < values.size(); ++i)
    out += (i == 0 ? "" : ", ") + value_text(values[i]);
  return out + "}";
}

std::optional<std::uint32_t> Policy::number(Arch arch, std::string_view syscall) const {
  if (const auto given = numbers.find(syscall); given != numbers.end()) {
    return given->second[static_cast<std::size_t>(arch)];
  }
  return syscall_number(arch, syscall);
}

}  // namespace sandy::seccomp
