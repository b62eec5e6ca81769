// A word that is the name of a policy (host/named_policy), and no path. Pure.
#pragma once

#include <algorithm>
#include <string_view>

namespace sandy::policy {

// [a-z0-9][a-z0-9_-]*. All else is a path: ./x, x.json, X, -.
constexpr bool is_policy_name(std::string_view word) {
  const auto plain = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
  return !word.empty() && plain(word.front()) && std::ranges::all_of(word, [&](char c) { return plain(c) || c == '_' || c == '-'; });
}

}  // namespace sandy::policy
