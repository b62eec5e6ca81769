#include "proxy/allowlist.h"

#include <algorithm>

#include "policy/host_name.h"
#include "proxy/address_class.h"

namespace sandy::proxy {
namespace {

using policy::NetworkRule;
using Kind = NetworkRule::Kind;

bool names(const NetworkRule& rule, std::string_view name) {
  if (rule.kind == Kind::name) return rule.name == name;
  return rule.kind == Kind::subdomains && policy::is_subdomain(name, rule.name);
}

bool names(const NetworkRule& rule, const policy::IpAddress& address) { return rule.kind == Kind::network && rule.network.contains(address); }

bool allows_port(const NetworkRule& rule, std::uint16_t port) { return rule.port ? *rule.port == port : port == 80 || port == 443; }

bool denies_port(const NetworkRule& rule, std::uint16_t port) { return !rule.port || *rule.port == port; }

template <typename Target>
const NetworkRule* find(const std::vector<NetworkRule>& rules, const Target& target, std::uint16_t port, bool (*suits)(const NetworkRule&, std::uint16_t)) {
  const auto it = std::ranges::find_if(rules, [&](const NetworkRule& rule) { return names(rule, target) && suits(rule, port); });
  return it == rules.end() ? nullptr : &*it;
}

Decision denied_by(const NetworkRule& rule) { return {false, "denied by the rule " + rule.text()}; }
Decision allowed_by(const NetworkRule& rule) { return {true, rule.text()}; }
Decision allowed_private_by(const NetworkRule& rule) { return {true, rule.text(), true}; }

}  // namespace

Allowlist::Allowlist(std::vector<NetworkRule> allow, std::vector<NetworkRule> deny, std::vector<NetworkRule> allow_private)
    : rules_(std::make_shared<const Rules>(Rules{std::move(allow), std::move(deny), std::move(allow_private)})) {}

const NetworkRule* Allowlist::find_allowing(const auto& target, std::uint16_t port) const {
  const auto* const rule = find(rules_->allow, target, port, allows_port);
  return rule != nullptr ? rule : find(added_, target, port, allows_port);
}

bool Allowlist::is_counted_as_public(const policy::IpAddress& address) const {
  return std::ranges::any_of(counted_as_public_, [&](const auto& network) { return network.contains(address); });
}

Decision Allowlist::decide(std::string_view name, std::uint16_t port) const {
  if (const auto* rule = find(rules_->deny, name, port, denies_port)) return denied_by(*rule);
  if (const auto* rule = find_allowing(name, port)) return allowed_by(*rule);
  if (const auto* rule = find(rules_->allow_private, name, port, allows_port)) return allowed_private_by(*rule);
  const bool other_port = std::ranges::any_of(rules_->allow, [&](const auto& rule) { return names(rule, name); });
  return {false, other_port ? "this port is not in the allowlist" : "not in the allowlist", false, asks_};
}

Decision Allowlist::decide(const policy::IpAddress& address, std::uint16_t port) const {
  if (const auto* rule = find(rules_->deny, address, port, denies_port)) return denied_by(*rule);
  if (const auto* rule = find(rules_->allow_private, address, port, allows_port)) return allowed_private_by(*rule);
  const auto* rule = find_allowing(address, port);
  const auto address_class = classify(address);
  const bool is_public = address_class == AddressClass::public_ || is_counted_as_public(address);
  if (rule == nullptr) return {false, "no rule names this address", false, asks_ && is_public};
  if (!is_public) return {false, std::string("is ") + words(address_class) + ", which only allow_private can name"};
  return allowed_by(*rule);
}

Decision Allowlist::decide_dial(std::string_view name, const policy::IpAddress& address, std::uint16_t port) const {
  if (const auto* rule = find(rules_->deny, address, port, denies_port)) return denied_by(*rule);
  const auto address_class = classify(address);
  if (address_class == AddressClass::public_ || is_counted_as_public(address)) return {true, address.text()};
  if (const auto* rule = find(rules_->allow_private, address, port, allows_port)) return allowed_private_by(*rule);
  if (const auto* rule = find(rules_->allow_private, name, port, allows_port)) return allowed_private_by(*rule);
  return {false, "leads to " + address.text() + ", " + words(address_class)};
}

Decision Allowlist::decide_answer(std::string_view name, const policy::IpAddress& address) const {
  for (const auto& rule : rules_->deny) {
    if (names(rule, address) && !rule.port) return denied_by(rule);
  }
  if (classify(address) == AddressClass::public_ || is_counted_as_public(address)) return {true, address.text()};
  for (const auto& rule : rules_->allow_private) {
    if (names(rule, address) || names(rule, name)) return allowed_private_by(rule);
  }
  return {false, "leads to " + address.text() + ", " + words(classify(address))};
}

Decision Allowlist::decide_name(std::string_view name) const {
  for (const auto& rule : rules_->deny) {
    if (names(rule, name) && !rule.port) return denied_by(rule);
  }
  for (const auto* rules : {&rules_->allow, &added_, &rules_->allow_private}) {
    for (const auto& rule : *rules) {
      if (names(rule, name)) return allowed_by(rule);
    }
  }
  if (asks_) return {true, "can be asked for", false, true};
  return {false, "not in the allowlist"};
}

Allowlist Allowlist::plus(NetworkRule rule) const {
  Allowlist out = *this;
  out.added_.push_back(std::move(rule));
  return out;
}

}  // namespace sandy::proxy
