#include "proxy/dns_responder.h"

#include <algorithm>

#include "policy/host_name.h"

namespace sandy::proxy::dns {
namespace {

constexpr std::uint32_t kTtl = 60;  // stable for the sandbox's life; short, as rules may change meanwhile
constexpr std::size_t kMaxUdp = 1'232, kMaxTcp = 65'535;

struct Verdict {
  Rcode rcode = Rcode::no_error;
  std::vector<Answer> answers;
  Decision decision;
  std::string wanted;  // the name whose real addresses are to be found
};

Verdict reverse(const policy::IpAddress& address, const SyntheticAddresses& addresses) {
  const auto name = addresses.name_of(address);
  if (!name) return {Rcode::name_error, {}, {false, "no name has this address"}};
  return {Rcode::no_error, {{*name, kTtl}}, {true, "an address of " + *name}};
}

Verdict judge(const Query& query, const Allowlist& allowlist, SyntheticAddresses& addresses) {
  if (query.question_class != kInternet || query.name.empty()) return {Rcode::refused, {}, {false, "not a name of the internet"}};
  if (!query.plain) return {Rcode::name_error, {}, {false, "a name with characters that names don't have"}};
  if (const auto address = reverse_address(query.name)) {
    auto verdict = reverse(*address, addresses);
    if (query.type != kPtr) verdict.answers.clear();
    return verdict;
  }
  const auto name = policy::canonical_host_name(query.name);
  if (!name) return {Rcode::name_error, {}, {false, name.error().why}};
  Verdict out{Rcode::no_error, {}, allowlist.decide_name(*name)};
  if (!out.decision.allowed) {
    out.rcode = Rcode::name_error;
    return out;
  }
  if (query.type != kA && query.type != kAaaa) return out;
  // A name that is still to be asked for is not looked up outside.
  if (allowlist.real_answers() && !out.decision.askable) {
    out.wanted = *name;
    return out;
  }
  const auto pair = addresses.addresses_of(*name);
  if (!pair) return {Rcode::server_failure, {}, {false, "too many names"}};
  out.answers.push_back({query.type == kA ? pair->v4 : pair->v6, kTtl});
  return out;
}

}  // namespace

std::vector<std::uint8_t> answer(const Reply::Wanted& wanted, std::span<const policy::IpAddress> addresses, bool known) {
  std::vector<Answer> answers;
  for (const auto& address : addresses) {
    if (address.v6 == (wanted.query.type == kAaaa)) answers.push_back({address, kTtl});
  }
  return encode_response(wanted.query, known ? Rcode::no_error : Rcode::server_failure, answers, wanted.limit);
}

Reply respond(std::span<const std::uint8_t> message, const Allowlist& allowlist, SyntheticAddresses& addresses, bool udp) {
  Reply out;
  const auto parsed = parse_query(message);
  if (const auto* refusal = std::get_if<Refusal>(&parsed)) {
    out.message = encode_refusal(*refusal);
    out.decision.reason = "a malformed query";
    return out;
  }
  const auto& query = std::get<Query>(parsed);
  auto verdict = judge(query, allowlist, addresses);
  const std::size_t limit = udp ? std::min<std::size_t>(query.edns_bytes.value_or(kPlainUdpBytes), kMaxUdp) : kMaxTcp;
  if (verdict.wanted.empty()) {
    out.message = encode_response(query, verdict.rcode, verdict.answers, limit);
  } else {
    out.wanted = Reply::Wanted{query, std::move(verdict.wanted), limit};
  }
  out.name = query.name;
  out.type = query.type;
  out.decision = std::move(verdict.decision);
  return out;
}

}  // namespace sandy::proxy::dns
