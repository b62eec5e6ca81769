// Whether a connection may be made: the decision, and why. Pure.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "policy/network_rule.h"

namespace sandy::proxy {

struct Decision {
  bool allowed = false;
  std::string reason;  // the rule that allows or denies, or words for why nothing allows
  bool private_target = false;  // allowed by allow_private
  bool askable = false;         // denied for want of a rule, where somebody can be asked for one
};

// The last line of every decision is deny. A rule in `deny` beats all in `allow`, and one for addresses also counts for what a name leads to.
// Cheap to copy, as there may be thousands of rules and each connection keeps those that it was judged by: copies share them.
class Allowlist {
 public:
  Allowlist() = default;
  Allowlist(std::vector<policy::NetworkRule> allow, std::vector<policy::NetworkRule> deny, std::vector<policy::NetworkRule> allow_private);

  // What no rule names can be asked for: its names exist for resolvers, and a connection waits for an answer.
  void let_ask() { asks_ = true; }
  // With one more rule in `allow`.
  Allowlist plus(policy::NetworkRule rule) const;

  // Names get their real addresses, and not made-up ones.
  void answer_really() { real_answers_ = true; }
  bool real_answers() const { return real_answers_; }

  // For tests: these networks count as public ones, and as other machines'.
  void count_as_public(std::vector<policy::IpNetwork> networks) { counted_as_public_ = std::move(networks); }
  bool is_counted_as_public(const policy::IpAddress& address) const;

  // `name` is canonical (policy/host_name.h).
  Decision decide(std::string_view name, std::uint16_t port) const;
  // A target that was given as an address: only rules for addresses can allow it.
  Decision decide(const policy::IpAddress& address, std::uint16_t port) const;
  // Of an allowed name: whether this address of its may be dialled. One that is not public must be named in allow_private, by its name or itself.
  Decision decide_dial(std::string_view name, const policy::IpAddress& address, std::uint16_t port) const;
  // Of an allowed name: whether it may be told that this is an address of its, for some port.
  Decision decide_answer(std::string_view name, const policy::IpAddress& address) const;
  // Whether the name exists, for a resolver: whether any port of it is allowed.
  Decision decide_name(std::string_view name) const;

 private:
  struct Rules {
    std::vector<policy::NetworkRule> allow, deny, allow_private;
  };
  const policy::NetworkRule* find_allowing(const auto& target, std::uint16_t port) const;

  std::shared_ptr<const Rules> rules_ = std::make_shared<const Rules>();
  std::vector<policy::NetworkRule> added_;  // to rules_->allow
  std::vector<policy::IpNetwork> counted_as_public_;
  bool asks_ = false, real_answers_ = false;
};

}  // namespace sandy::proxy
