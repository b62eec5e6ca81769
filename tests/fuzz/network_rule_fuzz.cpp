// links: sandy_proxy_core
//
// A rule, and after a newline a name that somebody asks for. A rule that is accepted has one spelling, which means the same; a name has one form; and an
// allowlist with that rule alone allows nothing but what the rule names.
#include <cstdint>
#include <string_view>

#include "broken.h"
#include "policy/host_name.h"
#include "policy/network_rule.h"
#include "proxy/allowlist.h"

using namespace sandy;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto newline = std::min(text.find('\n'), text.size());
  const auto rule = policy::parse_network_rule(text.substr(0, newline));
  const auto name = policy::canonical_host_name(text.substr(std::min(newline + 1, text.size())));
  if (name) {
    if (policy::canonical_host_name(*name).value_or("") != *name) broken("a canonical name that is none");
    if (policy::parse_ip_address(*name)) broken("an address that is a name");
  }
  if (!rule) return 0;
  const auto again = policy::parse_network_rule(rule->text());
  if (!again || *again != *rule) broken("a rule's own spelling means something else");
  if (!name) return 0;
  const proxy::Allowlist allowlist({*rule}, {}, {});
  using Kind = policy::NetworkRule::Kind;
  const bool named = (rule->kind == Kind::name && rule->name == *name) || (rule->kind == Kind::subdomains && name->ends_with('.' + rule->name));
  if (allowlist.decide_name(*name).allowed != named) broken("a name that the rule doesn't name");
  for (const std::uint16_t port : {std::uint16_t{80}, std::uint16_t{443}, std::uint16_t{22}}) {
    if (allowlist.decide(std::string_view(*name), port).allowed && (!named || (rule->port ? *rule->port != port : port == 22))) broken("a port that the rule doesn't name");
  }
  const proxy::Allowlist denied({*rule}, {*rule}, {});
  if (denied.decide(std::string_view(*name), rule->port.value_or(443)).allowed) broken("allowed and denied");
  return 0;
}
