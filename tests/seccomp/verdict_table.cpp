#include "verdict_table.h"

#include <linux/audit.h>

#include <fstream>
#include <sstream>

#include "plan/seccomp/symbols.h"

namespace sandy::seccomp {
namespace {

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, separator);) parts.push_back(part);
  return parts;
}

Result<Call> read_call(const std::string& text, Arch arch) {
  Call call{audit_arch(arch), 0, {}};
  const std::vector<std::string> parts = split(text, ':');
  if (parts.size() == 1) {
    const auto number = syscall_number(arch, text);
    if (!number) return fail(text, "is no system call of " + std::string(arch_name(arch)));
    call.number = *number;
    return call;
  }
  const auto number = parse_value(parts.back());
  if (!number) return std::unexpected(number.error());
  call.number = static_cast<std::uint32_t>(*number);
  if (parts[0] == "i386") {
    call.audit_arch = AUDIT_ARCH_I386;
  } else if (parts[0] == "arm") {
    call.audit_arch = AUDIT_ARCH_ARM;
  } else if (parts[0] == "x32") {
    call.number |= kX32Bit;
  } else if (parts[0] == "audit" && parts.size() == 3) {
    const auto foreign = parse_value(parts[1]);
    if (!foreign) return std::unexpected(foreign.error());
    call.audit_arch = static_cast<std::uint32_t>(*foreign);
  } else if (parts[0] != "nr") {
    return fail(text, "is no call");
  }
  return call;
}

Result<void> read_line(const std::string& where, const std::string& line,
                       std::vector<VerdictRow>& rows) {
  const std::size_t equals = line.find(" = ");
  if (equals == std::string::npos) return fail(where, "has no verdict");
  std::istringstream words(line.substr(0, equals));
  std::string policies, arches, name;
  if (!(words >> policies >> arches >> name)) return fail(where, "is too short");
  std::vector<std::uint64_t> args;
  for (std::string word; words >> word;) {
    const auto value = parse_value(word);
    if (!value) return fail(where, value.error().why);
    args.push_back(*value);
  }
  if (args.size() > 6) return fail(where, "has more than six arguments");
  for (const std::string& policy : split(policies, ',')) {
    for (const std::string& target : split(arches, ',')) {
      VerdictRow row{where, policy, {}, {}, {}, line.substr(equals + 3)};
      row.line += " [" + policy + " " + target + "]";
      const auto arch = arch_from_name(target.substr(0, target.find('+')));
      if (!arch) return fail(where, "\"" + target + "\" is no architecture");
      row.arch = *arch;
      row.options.allow_ptrace = target.ends_with("+ptrace");
      const auto call = read_call(name, row.arch);
      if (!call) return fail(where, call.error().text());
      row.call = *call;
      std::copy(args.begin(), args.end(), row.call.args.begin());
      rows.push_back(std::move(row));
    }
  }
  return {};
}

}  // namespace

Result<std::vector<VerdictRow>> read_verdict_table(const std::string& path) {
  std::ifstream in(path);
  if (!in) return fail(path, "can't be read");
  std::vector<VerdictRow> rows;
  std::string line;
  for (int number = 1; std::getline(in, line); ++number) {
    if (line.empty() || line.front() == '#') continue;
    const std::string where = "verdicts.table:" + std::to_string(number) + ": " + line;
    if (const auto read = read_line(where, line, rows); !read) return std::unexpected(read.error());
  }
  return rows;
}

}  // namespace sandy::seccomp
