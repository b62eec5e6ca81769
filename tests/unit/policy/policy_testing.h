// What the tests of policy/ share: a caller, and one line from JSON text to a policy or its
// refusal.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "policy/json_reader.h"
#include "policy/validate.h"

namespace sandy::policy {

inline const Caller& test_caller() {
  static const Caller caller{"/home/user", "/home/user/project", "/home/user/.local/state/sandy",
                             1000};
  return caller;
}

inline Result<SandboxPolicy> policy_of(std::string_view json, const Enforcement& enforcement = {}) {
  const auto draft = read_policy(json);
  if (!draft) return std::unexpected(draft.error());
  return validate(*draft, test_caller(), enforcement);
}

// {"version": 1, …}
inline std::string policy_json(std::string_view members) {
  return "{\"version\": 1" + (members.empty() ? "" : ", " + std::string(members)) + "}";
}

// An input that is refused, with the key that the error must start with, and words of its reason or
// fix.
struct Refusal {
  std::string input;
  std::string key;
  std::vector<std::string> words;
};

inline void expect_refusal(const Error& error, const Refusal& row) {
  EXPECT_TRUE(error.what.starts_with(row.key)) << error.text();
  EXPECT_FALSE(error.why.empty());
  for (const std::string& word : row.words) {
    EXPECT_THAT(error.text(), testing::HasSubstr(word));
  }
}

// Each input is the members of a policy file besides its version.
inline void expect_refused(const std::vector<Refusal>& rows) {
  for (const Refusal& row : rows) {
    SCOPED_TRACE(row.input);
    const auto policy = policy_of(policy_json(row.input));
    if (policy) {
      ADD_FAILURE() << "accepted";
    } else {
      expect_refusal(policy.error(), row);
    }
  }
}

// The policy of members that must be valid.
inline SandboxPolicy valid(std::string_view members, const Enforcement& enforcement = {}) {
  auto policy = policy_of(policy_json(members), enforcement);
  if (!policy) throw std::runtime_error(policy.error().text());
  return std::move(*policy);
}

}  // namespace sandy::policy
