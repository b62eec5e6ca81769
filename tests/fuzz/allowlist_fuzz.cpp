// links: sandy_proxy_core
//
// A decision: a denial beats all, the last line is deny, and every spelling of an IPv4 address within an IPv6 one is judged as that. The input is rules, a line
// each, as sandy-proxy gets them, then an empty line, then a target.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "policy/host_name.h"
#include "proxy/address_class.h"
#include "proxy/allowlist.h"
#include "proxy/authority.h"

using namespace sandy;
using namespace sandy::proxy;

namespace {

// RFC 4291 (mapped), RFC 6052 (NAT64).
void check_embedded(const policy::IpAddress& v4) {
  for (const char* prefix : {"::ffff:0:0", "64:ff9b::"}) {
    auto v6 = *policy::parse_ip_address(prefix);
    std::copy_n(v4.bytes.begin(), 4, v6.bytes.begin() + 12);
    const auto direct = classify(v4);
    if (classify(v6) != direct) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size >= 4) {
    policy::IpAddress v4;
    std::copy_n(data, 4, v4.bytes.begin());
    check_embedded(v4);
  }
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  std::vector<policy::NetworkRule> allow, deny, allow_private;
  while (!rest.empty()) {
    const auto end = std::min(rest.find('\n'), rest.size());
    const auto line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (line.empty()) break;
    auto rule = policy::parse_network_rule(line.substr(1));
    if (rule) (line[0] == '-' ? deny : line[0] == '~' ? allow_private : allow).push_back(std::move(*rule));
  }
  const auto target = parse_authority(rest);
  if (!target) return 0;
  const std::uint16_t port = target->port.value_or(443);
  const Allowlist rules(allow, deny, allow_private), open(allow, {}, allow_private), nothing({}, deny, {});
  const auto decide = [&](const Allowlist& by) { return std::visit([&](const auto& host) { return by.decide(host, port); }, target->host); };
  const bool allowed = decide(rules).allowed;
  if (allowed && !decide(open).allowed) std::abort();  // a denial allows nothing
  if (decide(nothing).allowed) std::abort();           // no rule allows nothing
  if (const auto* address = std::get_if<policy::IpAddress>(&target->host); address != nullptr && allowed && classify(*address) != AddressClass::public_) {
    if (std::ranges::none_of(allow_private, [&](const auto& rule) { return rule.kind == policy::NetworkRule::Kind::network && rule.network.contains(*address); })) std::abort();
  }
  if (const auto* name = std::get_if<std::string>(&target->host); name != nullptr && allowed && !rules.decide_name(*name).allowed) std::abort();
  return 0;
}
