// A seccomp policy as a value: which system calls, with which arguments, get which verdict, and
// why. Pure.
//
// Semantics: the rows that name a call are tried in order; the first whose tests all hold decides;
// when none does, `default_action`. A call made through a foreign ABI (i386, x32, 32-bit ARM) gets
// `foreign_abi` whatever it is. Grammar of the files: seccomp-policies/README.md. Kernel side:
// seccomp(2), <linux/seccomp.h>.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "plan/seccomp/syscall_table.h"

namespace sandy::seccomp {

enum class ActionKind { allow, log, errno_, trap, kill_thread, kill_process };

struct Action {
  ActionKind kind = ActionKind::kill_process;
  int error_number = 0;  // 1 to 4095; kind == errno_ only
  bool operator==(const Action&) const = default;

  // Whether the call runs (log also runs it).
  bool permits() const { return kind == ActionKind::allow || kind == ActionKind::log; }
  std::uint32_t bpf_return() const;  // SECCOMP_RET_*
  std::string text() const;          // as the grammar writes it: "errno EPERM"
};

Result<Action> parse_action(std::string_view text);  // the error has an empty `what`

enum class Op {
  equal,
  not_equal,
  less,
  less_equal,
  greater,
  greater_equal,
  masked_equal,
  masked_not_equal
};

struct Value {
  std::uint64_t number = 0;
  std::string text;  // as the file wrote it
  bool operator==(const Value& other) const { return number == other.number; }
};

// One argument compared with one or several values. Several values: any of them for equal and
// masked_equal, none of them for not_equal and masked_not_equal; the other operators take one.
struct ArgTest {
  unsigned arg = 0;  // 0 to 5
  Op op = Op::equal;
  unsigned bits =
      64;  // 32: the kernel uses only the low half of this argument, so nothing else is looked at
  Value mask{~std::uint64_t{0}, ""};
  std::vector<Value> values;
  bool operator==(const ArgTest&) const = default;

  bool holds(const std::array<std::uint64_t, 6>& args) const;
  std::string text() const;  // "low32(arg1) & 0xf == SOCK_RAW"
};

struct Row {
  std::vector<std::string> syscalls;
  Action action;
  std::vector<ArgTest> when;               // all must hold; empty: always
  bool needs_ptrace = false;               // only with CompileOptions::allow_ptrace
  std::array<bool, 2> arches{true, true};  // by Arch
  std::string reason;
  std::string origin;  // where it stands, for messages: "default.json: rows[3]"

  bool applies(Arch arch) const { return arches[static_cast<std::size_t>(arch)]; }
};

enum class Source { sandy, oci };

struct Policy {
  std::string name;
  Source source = Source::sandy;
  Action default_action;
  std::string default_reason;
  Action foreign_abi{ActionKind::kill_process};
  std::vector<Row> rows;
  // Numbers that the file itself gives, for calls newer than syscall_table.h; by Arch.
  std::map<std::string, std::array<std::optional<std::uint32_t>, 2>, std::less<>> numbers;

  std::optional<std::uint32_t> number(Arch arch, std::string_view syscall) const;
};

struct CompileOptions {
  bool allow_ptrace =
      false;  // takes the rows with "switch": "ptrace" (policy key seccomp.unsafe_ptrace)
};

// Reads a policy file of either kind: Sandy's own (it has "version") or an OCI / Docker profile (it
// has "defaultAction"). `name` is the file's name, for messages. Every problem is an error that
// names key and reason.
Result<Policy> parse_policy(std::string_view json, const std::string& name);

// The policies that are part of the programs: "default" and "strict" for sandboxes, "proxy" for sandy-proxy itself. Parsed once.
Result<const Policy*> builtin(std::string_view name);

// Human sentences for all that `policy` permits and the built-in default refuses, on any
// architecture. Empty for a policy that is as strict or stricter. Row switches count as off: what
// they permit has its own unsafe_ key.
std::vector<std::string> weakens(const Policy& policy);

// One line per row that counts on this architecture, stable, for `sandy plan`: "errno EPERM  bpf
// (reason)".
std::vector<std::string> describe(const Policy& policy, Arch arch,
                                  const CompileOptions& options = {});

}  // namespace sandy::seccomp
