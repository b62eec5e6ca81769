#include "policy/network.h"

#include <algorithm>
#include <map>
#include <optional>

#include "policy/json_reader.h"
#include "policy/port.h"
#include "policy/sizes.h"
#include "policy/words.h"

namespace sandy::policy {
namespace {

using Kind = NetworkRule::Kind;

constexpr std::size_t kMaxPublished = 64;

// What a list can hold: the reason and the fix why it can't hold this rule, or nothing.
Result<void> suits_allow(const NetworkRule& rule) {
  if (rule.kind == Kind::name && rule.name == kThisMachine) {
    return fail("", "this machine's loopback, which allow does not open",
                "name it in network.allow_private (--allow-private, allow_private=) with its port: " + std::string(kThisMachine) + ":" + (rule.port ? std::to_string(*rule.port) : "PORT"));
  }
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

Result<std::vector<PublishedPort>> parse_published(const std::vector<Text>& texts) {
  std::vector<PublishedPort> out;
  for (const Text& text : texts) {
    const std::string_view value = text.value;
    const auto colon = value.find(':');
    const auto port = parse_port(colon == std::string_view::npos ? value : value.substr(colon + 1));
    const auto host_port = colon == std::string_view::npos ? std::optional<std::uint16_t>(0) : parse_port(value.substr(0, colon));
    if (!port || !host_port) return fail(quoted(text.key, text.value), "is no port", "write \"PORT\", or \"HOST_PORT:PORT\" to choose where this machine has it; both are from 1 to 65535");
    if (std::ranges::any_of(out, [&](const auto& other) { return other.port == *port || (*host_port != 0 && other.host_port == *host_port); })) {
      return fail(quoted(text.key, text.value), "a port that is published already", "leave one of them out");
    }
    out.push_back({*port, *host_port});
  }
  return out;
}

}  // namespace

std::string text(const PublishedPort& port) {
  return (port.host_port == 0 ? "" : std::to_string(port.host_port) + ":") + std::to_string(port.port);
}

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
  if (draft.dns_answers) {
    const auto answers = choose(*draft.dns_answers, {"synthetic", "real"});
    if (!answers) return std::unexpected(answers.error());
    network.real_dns_answers = *answers == 1;
    if (network.mode == NetworkMode::none) {
      return fail(quoted(draft.dns_answers->key, draft.dns_answers->value), "answers to names, but network.mode is \"none\"", "leave it out, or set network.mode to \"allowlist\"");
    }
  }
  if (draft.publish.size() > kMaxPublished) return fail("network.publish", "more than " + std::to_string(kMaxPublished) + " ports");
  if (!draft.publish.empty() && network.mode == NetworkMode::none) {
    return fail(quoted(draft.publish.front().key, draft.publish.front().value), "a published port, but network.mode is \"none\"",
                "set network.mode to \"allowlist\"; without rules it allows nothing else");
  }
  auto published = parse_published(draft.publish);
  if (!published) return std::unexpected(published.error());
  network.publish = std::move(*published);
  // Of two rules of which one is wider, the denial wins; two for the same are a mistake.
  std::map<NetworkRule, const Text*> allowed;
  for (std::size_t i = 0; i < network.allow.size(); ++i) allowed[network.allow[i]] = &draft.allow[i];
  for (std::size_t i = 0; i < network.allow_private.size(); ++i) allowed[network.allow_private[i]] = &draft.allow_private[i];
  for (std::size_t i = 0; i < network.deny.size(); ++i) {
    const auto found = allowed.find(network.deny[i]);
    if (found == allowed.end()) continue;
    return fail(quoted(draft.deny[i].key, draft.deny[i].value), "contradicts " + quoted(found->second->key, found->second->value), "leave one of them out");
  }
  return network;
}

}  // namespace sandy::policy
