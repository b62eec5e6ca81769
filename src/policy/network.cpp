#include "policy/network.h"

#include <map>

#include "policy/json_reader.h"
#include "policy/sizes.h"
#include "policy/words.h"

namespace sandy::policy {
namespace {

using Kind = NetworkRule::Kind;

// What a list can hold: the reason and the fix why it can't hold this rule, or nothing.
Result<void> suits_allow(const NetworkRule& rule) {
  if (rule.kind != Kind::network || rule.port) return {};
  return fail("", "an address without a port", "write " + rule.text() + ":PORT");
}

Result<void> suits_allow_private(const NetworkRule& rule) {
  if (rule.kind == Kind::subdomains || (rule.kind == Kind::network && rule.network.prefix != rule.network.address.bits())) {
    return fail("", "more than one target", "name each private target that is meant: NAME:PORT or ADDRESS:PORT");
  }
  if (!rule.port) return fail("", "a private target without a port", "write " + rule.text() + ":PORT");
  return {};
}

Result<void> suits_deny(const NetworkRule&) { return {}; }

using Suits = Result<void> (*)(const NetworkRule&);

Result<std::vector<NetworkRule>> parse_rules(const std::vector<Text>& texts, Suits suits) {
  std::vector<NetworkRule> out;
  for (const Text& text : texts) {
    const std::string what = quoted(text.key, text.value);
    auto rule = parse_network_rule(text.value);
    if (!rule) return fail(what, rule.error().why, rule.error().fix);
    if (const auto ok = suits(*rule); !ok) return fail(what, ok.error().why, ok.error().fix);
    out.push_back(std::move(*rule));
  }
  return out;
}

// This version has no gateway, so the only network it can enforce is none. To be deleted with the
// first that has one.
Result<void> refuse_allowlist(const NetworkDraft& draft) {
  return fail(quoted(draft.mode->key, draft.mode->value),
              "this version has no network gateway to enforce the list with",
              "use \"none\", and bring what the command needs into the workspace");
}

}  // namespace

Result<Network> check_network(const NetworkDraft& draft) {
  Network network;
  if (draft.mode) {
    const auto mode = choose(*draft.mode, {"none", "allowlist"});
    if (!mode) return std::unexpected(mode.error());
    network.mode = *mode == 1 ? NetworkMode::allowlist : NetworkMode::none;
  }
  if (draft.allow.size() + draft.deny.size() + draft.allow_private.size() > kMaxRules) {
    return fail("network", "more than " + std::to_string(kMaxRules) + " rules");
  }
  struct List {
    const std::vector<Text>& from;
    std::vector<NetworkRule>& to;
    Suits suits;
  };
  for (const List& list : {List{draft.allow, network.allow, suits_allow}, List{draft.deny, network.deny, suits_deny},
                           List{draft.allow_private, network.allow_private, suits_allow_private}}) {
    auto rules = parse_rules(list.from, list.suits);
    if (!rules) return std::unexpected(rules.error());
    if (!rules->empty() && network.mode == NetworkMode::none) {
      return fail(quoted(list.from.front().key, list.from.front().value), "a network rule, but network.mode is \"none\"",
                  "leave the rule out, or set network.mode to \"allowlist\"");
    }
    list.to = std::move(*rules);
  }
  // Of two rules of which one is wider, the denial wins; two for the same are a mistake.
  std::map<NetworkRule, const Text*> allowed;
  for (std::size_t i = 0; i < network.allow.size(); ++i) allowed[network.allow[i]] = &draft.allow[i];
  for (std::size_t i = 0; i < network.allow_private.size(); ++i) allowed[network.allow_private[i]] = &draft.allow_private[i];
  for (std::size_t i = 0; i < network.deny.size(); ++i) {
    const auto found = allowed.find(network.deny[i]);
    if (found == allowed.end()) continue;
    return fail(quoted(draft.deny[i].key, draft.deny[i].value), "contradicts " + quoted(found->second->key, found->second->value), "leave one of them out");
  }
  if (network.mode == NetworkMode::allowlist) {
    if (auto ok = refuse_allowlist(draft); !ok) return std::unexpected(ok.error());
  }
  return network;
}

}  // namespace sandy::policy
