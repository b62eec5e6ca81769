#include "policy/settings.h"

#include <algorithm>
#include <set>

#include "policy/json_reader.h"
#include "policy/paths.h"
#include "policy/sizes.h"
#include "policy/words.h"

namespace sandy::policy {
namespace {

constexpr std::uint64_t kKiB = 1024;
constexpr std::uint64_t kMiB = 1024 * kKiB;
constexpr std::uint64_t kSecond = 1000;
constexpr std::uint64_t kYear = 366 * 24 * 3600 * kSecond;
constexpr std::uint64_t kMaxOffset =
    INT64_MAX;  // the kernel's file sizes and limits are signed (loff_t)

constexpr std::size_t kMaxDescription = 1024;
constexpr std::size_t kMaxVariables = 1024;
constexpr std::size_t kMaxVariableName = 255;
constexpr std::size_t kMaxEnvironmentBytes = 128 * kKiB;
constexpr std::size_t kMaxHostname = 64;              // HOST_NAME_MAX of Linux, see sethostname(2)
constexpr std::size_t kMaxLabel = 63;                 // RFC 1123 2.1, RFC 1035 2.3.4
constexpr std::uint64_t kMaxId = 65533;

bool is_alpha(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

template <typename T>
struct Range {
  T min, max;
  const char* too_small;  // reasons
  const char* too_large;
};

template <typename T, typename Parse>
Result<void> check_range(const OptionalText& text, Parse parse, const Range<T>& range,
                         std::optional<T>& out) {
  if (!text) return {};
  const auto value = parse(*text);
  if (!value) return std::unexpected(value.error());
  if (*value < range.min) return fail(quoted(text->key, text->value), range.too_small);
  if (*value > range.max) return fail(quoted(text->key, text->value), range.too_large);
  out = *value;
  return {};
}

Result<void> check_name(const std::string& key, std::string_view name) {
  const bool valid = !name.empty() && !is_digit(name[0]) && std::ranges::all_of(name, [](char c) {
    return is_alpha(c) || is_digit(c) || c == '_';
  });
  if (!valid) {
    return fail(quoted(key, name), "not the name of a variable",
                "use letters, digits and \"_\", and no digit first");
  }
  if (name.size() > kMaxVariableName) {
    return fail(quoted(key, name),
                "a name of more than " + std::to_string(kMaxVariableName) + " bytes");
  }
  return {};
}

Result<void> check_hostname(const Text& text) {
  const auto refuse = [&](const char* why) { return fail(quoted(text.key, text.value), why); };
  if (text.value.size() > kMaxHostname)
    return refuse("longer than 64 bytes, the kernel's limit for host names");
  std::string_view rest = text.value;
  while (true) {
    const std::size_t dot = rest.find('.');
    const std::string_view label = rest.substr(0, dot);
    if (label.empty()) return refuse("an empty label (RFC 1123)");
    if (label.size() > kMaxLabel) return refuse("a label longer than 63 bytes (RFC 1123)");
    if (label.front() == '-' || label.back() == '-')
      return refuse("a label starts or ends with \"-\" (RFC 1123)");
    if (!std::ranges::all_of(label,
                             [](char c) { return is_alpha(c) || is_digit(c) || c == '-'; })) {
      return refuse("may only have letters, digits, \"-\" and \".\" (RFC 1123)");
    }
    if (dot == std::string_view::npos) return {};
    rest.remove_prefix(dot + 1);
  }
}

Result<void> check_id(const OptionalText& text, std::uint32_t& out) {
  if (!text) return {};
  const auto id = parse_count(*text);
  if (!id) return std::unexpected(id.error());
  if (*id == 0) {
    return fail(quoted(text->key, text->value),
                "programs that see themselves as root behave as if they had its rights",
                "use 1 to 65533; 1000 is the default");
  }
  if (*id > kMaxId) {
    return fail(quoted(text->key, text->value),
                "larger than 65533: 65534 and 65535 stand for \"nobody\" and \"none\"",
                "use 1 to 65533; 1000 is the default");
  }
  out = static_cast<std::uint32_t>(*id);
  return {};
}

}  // namespace

Result<std::string> check_description(const OptionalText& draft) {
  if (!draft) return std::string();
  if (draft->value.size() > kMaxDescription) {
    return fail(draft->key, "longer than " + std::to_string(kMaxDescription) + " bytes", "say in one sentence what the policy is for");
  }
  // It is shown in lists, where it must not look like another line, nor like the terminal's own words.
  if (printable(draft->value) != draft->value) {
    return fail(quoted(draft->key, draft->value), "has a line end or another character that can't be shown", "write it as one line of plain text");
  }
  return draft->value;
}

Result<Limits> check_limits(const LimitsDraft& draft) {
  using Whole = Range<std::uint64_t>;
  constexpr char kTooLarge[] = "larger than 2^63 - 1 bytes, the kernel's limit";
  const Whole rate{1, kMaxOffset, "nothing could be read or written", kTooLarge};
  Limits limits;
  limits.best_effort = draft.best_effort && draft.best_effort->value;
  const Result<void> checks[] = {
      check_range(draft.memory, parse_size,
                  Whole{16 * kMiB, kMaxOffset, "less than 16M: no shell could start", kTooLarge},
                  limits.memory),
      check_range(draft.swap, parse_size, Whole{0, kMaxOffset, "", kTooLarge}, limits.swap),
      // CFS bandwidth is at least 1 ms of each 100 ms (kernel documentation, sched-bwc).
      check_range(draft.cpus, parse_cpus,
                  Range<double>{0.01, 8192, "less than 0.01, the kernel's smallest share",
                                "more than 8192 cores"},
                  limits.cpus),
      check_range(draft.pids, parse_count,
                  Whole{8, 4'194'304, "less than 8: no pipeline could run",
                        "more than 4194304, the kernel's largest pid"},
                  limits.pids),
      check_range(draft.io_read, parse_size, rate, limits.io_read),
      check_range(draft.io_write, parse_size, rate, limits.io_write),
      check_range(draft.wall_time, parse_duration,
                  Whole{100, kYear, "less than 100ms: the sandbox would end before it started",
                        "more than 366 days"},
                  limits.wall_time_ms),
      check_range(draft.open_files, parse_count,
                  Whole{32, 1'048'576, "less than 32: common programs could not start",
                        "more than 1048576, the kernel's default for fs.nr_open"},
                  limits.open_files),
      check_range(draft.file_size, parse_size,
                  Whole{1, kMaxOffset, "no file could be written", kTooLarge}, limits.file_size),
      check_range(
          draft.tmp_size, parse_size,
          Whole{64 * kKiB, kMaxOffset, "less than 64k: common programs need more", kTooLarge},
          limits.tmp_size),
      check_range(draft.log_size, parse_size,
                  Whole{0, 256 * 1024 * kKiB, "", "more than 256M: it is kept in memory"},
                  limits.log_size),
  };
  for (const auto& check : checks) {
    if (!check) return std::unexpected(check.error());
  }
  return limits;
}

Result<Seccomp> check_seccomp(const SeccompDraft& draft, const Caller& caller) {
  Seccomp seccomp;
  seccomp.unsafe_ptrace = draft.unsafe_ptrace && draft.unsafe_ptrace->value;
  if (draft.base && draft.file) {
    return fail(quoted(draft.file->key, draft.file->value),
                "a file stands in place of the base policy in " + draft.base->key,
                "keep one of the two");
  }
  if (draft.base) {
    const auto base = choose(*draft.base, {"default", "strict"});
    if (!base) return std::unexpected(base.error());
    seccomp.base = *base == 1 ? SeccompBase::strict : SeccompBase::default_;
  }
  if (draft.file) {
    auto file = host_path(*draft.file, caller);
    if (!file) return std::unexpected(file.error());
    seccomp.base = SeccompBase::file;
    seccomp.file = std::move(*file);
  }
  return seccomp;
}

Result<Environment> check_environment(const EnvironmentDraft& draft) {
  if (draft.pass.size() + draft.set.size() > kMaxVariables) {
    return fail("environment", "more than " + std::to_string(kMaxVariables) + " variables");
  }
  Environment environment;
  std::size_t bytes = 0;
  for (const Variable& variable : draft.set) {
    if (auto ok = check_name(variable.key, variable.name); !ok) return std::unexpected(ok.error());
    if (variable.value.find('\0') != std::string::npos)
      return fail(variable.key, "the value contains a NUL byte");
    if (variable.value.size() > kMaxVariableValue) {
      return fail(variable.key,
                  "a value of more than " + std::to_string(kMaxVariableValue) + " bytes");
    }
    const auto [entry, added] = environment.set.emplace(variable.name, variable.value);
    if (!added && entry->second != variable.value) {
      return fail(quoted(variable.key, variable.name), "set twice, to different values",
                  "keep one of the two");
    }
    bytes += added ? variable.name.size() + variable.value.size() : 0;
  }
  if (bytes > kMaxEnvironmentBytes) {
    return fail("environment.set",
                "more than " + std::to_string(kMaxEnvironmentBytes) + " bytes together",
                "write large values to a file in the workspace");
  }
  std::set<std::string> names;
  for (const Text& name : draft.pass) {
    if (auto ok = check_name(name.key, name.value); !ok) return std::unexpected(ok.error());
    if (environment.set.contains(name.value)) {
      return fail(quoted(name.key, name.value),
                  "the variable is set as well, so passing it contradicts that",
                  "keep one of the two");
    }
    names.insert(name.value);
  }
  environment.pass.assign(names.begin(), names.end());
  return environment;
}

Result<Process> check_process(const ProcessDraft& draft) {
  Process process;
  if (draft.hostname) {
    if (auto ok = check_hostname(*draft.hostname); !ok) return std::unexpected(ok.error());
    process.hostname = draft.hostname->value;
  }
  if (draft.cwd) {
    auto cwd = sandbox_path(*draft.cwd);
    if (!cwd) return std::unexpected(cwd.error());
    process.cwd = std::move(*cwd);
  }
  if (auto ok = check_id(draft.uid, process.uid); !ok) return std::unexpected(ok.error());
  if (auto ok = check_id(draft.gid, process.gid); !ok) return std::unexpected(ok.error());
  return process;
}

}  // namespace sandy::policy
