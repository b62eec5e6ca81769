// Whether a connection may be made: the decision, and why. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "policy/network_rule.h"

namespace sandy::proxy {

struct Decision {
  bool allowed = false;
  std::string reason;  // the rule that allows or denies, or words for why nothing allows
};

// The last line of every decision is deny. A rule in `deny` beats all in `allow`, and one for addresses also counts for what a name leads to.
class Allowlist {
 public:
  Allowlist() = default;
  Allowlist(std::vector<policy::NetworkRule> allow, std::vector<policy::NetworkRule> deny, std::vector<policy::NetworkRule> allow_private);

  // `name` is canonical (policy/host_name.h).
  Decision decide(std::string_view name, std::uint16_t port) const;
  // A target that was given as an address: only rules for addresses can allow it.
  Decision decide(const policy::IpAddress& address, std::uint16_t port) const;
  // Of an allowed name: whether this address of its may be dialled. One that is not public must be named in allow_private, by its name or itself.
  Decision decide_dial(std::string_view name, const policy::IpAddress& address, std::uint16_t port) const;
  // Whether the name exists, for a resolver: whether any port of it is allowed.
  Decision decide_name(std::string_view name) const;

 private:
  std::vector<policy::NetworkRule> allow_, deny_, allow_private_;
};

}  // namespace sandy::proxy
