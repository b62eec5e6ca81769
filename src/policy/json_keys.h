// The keys of a policy file: one table, which the reader walks and which policy.schema.json is
// tested against.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "policy/draft.h"

namespace sandy::policy {

// What JSON may stand under a key.
enum class KeyKind {
  version,    // 1
  object,     // its members are the table's rows that start with its path
  seccomp,    // as object, or a string for seccomp.base
  flag,       // boolean
  text,       // string
  path,       // string, or {"bytes": base64}
  paths,      // array of paths
  texts,      // array of strings
  amount,     // string or number: sizes, durations, cores
  count,      // whole number
  variables,  // object of name to string or {"bytes": base64}
};

// Where the value goes in a draft.
using TextSlot = OptionalText& (*)(PolicyDraft&);
using FlagSlot = OptionalFlag& (*)(PolicyDraft&);
using ListSlot = std::vector<Text>& (*)(PolicyDraft&);
using KeySlot = std::variant<std::monostate, TextSlot, FlagSlot, ListSlot>;

struct PolicyKey {
  std::string_view path;  // "limits.memory"
  KeyKind kind;
  KeySlot slot;
};

std::span<const PolicyKey> policy_keys();

// The row of a path, or nullptr.
const PolicyKey* find_key(std::string_view path);

// The path that a user who wrote `name` under `outer` ("" = the top) most likely meant, or "": the
// same name elsewhere, or one with a typo under `outer`.
std::string nearest_key(std::string_view outer, std::string_view name);

// The one of `words` that is nearest to `word` by edit distance, or "" where none is near.
std::string nearest_word(std::string_view word, std::span<const std::string_view> words);

}  // namespace sandy::policy
