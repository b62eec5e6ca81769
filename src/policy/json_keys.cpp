#include "policy/json_keys.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <vector>

namespace sandy::policy {
namespace {

constexpr std::size_t kMaxTypoLength = 32;

#define SANDY_TEXT(member) TextSlot([](PolicyDraft& d) -> OptionalText& { return d.member; })
#define SANDY_FLAG(member) FlagSlot([](PolicyDraft& d) -> OptionalFlag& { return d.member; })
#define SANDY_LIST(member) ListSlot([](PolicyDraft& d) -> std::vector<Text>& { return d.member; })

const std::array kKeys{
    PolicyKey{"version", KeyKind::version, {}},
    PolicyKey{"description", KeyKind::text, SANDY_TEXT(description)},
    PolicyKey{"filesystem", KeyKind::object, {}},
    PolicyKey{"filesystem.workspace", KeyKind::object, {}},
    PolicyKey{"filesystem.workspace.mode", KeyKind::text, SANDY_TEXT(filesystem.workspace.mode)},
    PolicyKey{"filesystem.workspace.path", KeyKind::path, SANDY_TEXT(filesystem.workspace.path)},
    PolicyKey{"filesystem.workspace.mount", KeyKind::path, SANDY_TEXT(filesystem.workspace.mount)},
    PolicyKey{"filesystem.read", KeyKind::paths, SANDY_LIST(filesystem.read)},
    PolicyKey{"filesystem.write", KeyKind::paths, SANDY_LIST(filesystem.write)},
    PolicyKey{"filesystem.deny", KeyKind::paths, SANDY_LIST(filesystem.deny)},
    PolicyKey{"filesystem.unsafe_broad_workspace", KeyKind::flag,
              SANDY_FLAG(filesystem.unsafe_broad_workspace)},
    PolicyKey{"network", KeyKind::object, {}},
    PolicyKey{"network.mode", KeyKind::text, SANDY_TEXT(network.mode)},
    PolicyKey{"network.allow", KeyKind::texts, SANDY_LIST(network.allow)},
    PolicyKey{"network.deny", KeyKind::texts, SANDY_LIST(network.deny)},
    PolicyKey{"network.allow_private", KeyKind::texts, SANDY_LIST(network.allow_private)},
    PolicyKey{"network.dns_answers", KeyKind::text, SANDY_TEXT(network.dns_answers)},
    PolicyKey{"network.publish", KeyKind::texts, SANDY_LIST(network.publish)},
    PolicyKey{"limits", KeyKind::object, {}},
    PolicyKey{"limits.memory", KeyKind::amount, SANDY_TEXT(limits.memory)},
    PolicyKey{"limits.swap", KeyKind::amount, SANDY_TEXT(limits.swap)},
    PolicyKey{"limits.cpus", KeyKind::amount, SANDY_TEXT(limits.cpus)},
    PolicyKey{"limits.pids", KeyKind::count, SANDY_TEXT(limits.pids)},
    PolicyKey{"limits.io_read", KeyKind::amount, SANDY_TEXT(limits.io_read)},
    PolicyKey{"limits.io_write", KeyKind::amount, SANDY_TEXT(limits.io_write)},
    PolicyKey{"limits.wall_time", KeyKind::amount, SANDY_TEXT(limits.wall_time)},
    PolicyKey{"limits.open_files", KeyKind::count, SANDY_TEXT(limits.open_files)},
    PolicyKey{"limits.file_size", KeyKind::amount, SANDY_TEXT(limits.file_size)},
    PolicyKey{"limits.tmp_size", KeyKind::amount, SANDY_TEXT(limits.tmp_size)},
    PolicyKey{"limits.log_size", KeyKind::amount, SANDY_TEXT(limits.log_size)},
    PolicyKey{"limits.best_effort", KeyKind::flag, SANDY_FLAG(limits.best_effort)},
    PolicyKey{"seccomp", KeyKind::seccomp, {}},
    PolicyKey{"seccomp.base", KeyKind::text, SANDY_TEXT(seccomp.base)},
    PolicyKey{"seccomp.file", KeyKind::path, SANDY_TEXT(seccomp.file)},
    PolicyKey{"seccomp.unsafe_ptrace", KeyKind::flag, SANDY_FLAG(seccomp.unsafe_ptrace)},
    PolicyKey{"environment", KeyKind::object, {}},
    PolicyKey{"environment.pass", KeyKind::texts, SANDY_LIST(environment.pass)},
    PolicyKey{"environment.set", KeyKind::variables, {}},
    PolicyKey{"process", KeyKind::object, {}},
    PolicyKey{"process.hostname", KeyKind::text, SANDY_TEXT(process.hostname)},
    PolicyKey{"process.cwd", KeyKind::path, SANDY_TEXT(process.cwd)},
    PolicyKey{"process.uid", KeyKind::count, SANDY_TEXT(process.uid)},
    PolicyKey{"process.gid", KeyKind::count, SANDY_TEXT(process.gid)},
};

#undef SANDY_TEXT
#undef SANDY_FLAG
#undef SANDY_LIST

// "limits.memory" = "limits" and "memory".
std::pair<std::string_view, std::string_view> split(std::string_view path) {
  const auto dot = path.rfind('.');
  if (dot == std::string_view::npos) return {"", path};
  return {path.substr(0, dot), path.substr(dot + 1)};
}

// Edits (insert, delete, replace) that turn one into the other, Levenshtein 1966.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
    }
  }
  return row[b.size()];
}

}  // namespace

std::span<const PolicyKey> policy_keys() {
  return kKeys;
}

const PolicyKey* find_key(std::string_view path) {
  const auto row = std::ranges::find(kKeys, path, &PolicyKey::path);
  return row == kKeys.end() ? nullptr : &*row;
}

std::string nearest_word(std::string_view word, std::span<const std::string_view> words) {
  if (word.empty() || word.size() > kMaxTypoLength) return {};
  std::string_view best;
  std::size_t best_distance = word.size() / 3 + 2;  // a third wrong, and one more
  for (const std::string_view candidate : words) {
    const std::size_t distance = edit_distance(word, candidate);
    if (distance < best_distance && distance < candidate.size()) {
      best = candidate;
      best_distance = distance;
    }
  }
  return std::string(best);
}

std::string nearest_key(std::string_view outer, std::string_view name) {
  std::vector<std::string_view> siblings;
  for (const PolicyKey& key : kKeys) {
    const auto [parent, last] = split(key.path);
    if (parent == outer) siblings.push_back(last);
  }
  if (const std::string typo = nearest_word(name, siblings); !typo.empty()) {
    return outer.empty() ? typo : std::string(outer) + "." + typo;
  }
  for (const PolicyKey& key : kKeys) {
    if (split(key.path).second == name) return std::string(key.path);
  }
  return {};
}

}  // namespace sandy::policy
