// What a sandbox's resolver is answered: from the allowlist alone, at once, and without asking anybody. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "proxy/allowlist.h"
#include "proxy/dns_message.h"
#include "proxy/synthetic_addresses.h"

namespace sandy::proxy::dns {

struct Reply {
  std::vector<std::uint8_t> message;  // empty: none is sent
  // The question, where there was one: for the log of decisions.
  std::string name;
  std::uint16_t type = 0;
  Decision decision;
  // What is to be answered with answer(), once the addresses are known.
  struct Wanted {
    Query query;
    std::string name;  // canonical
    std::size_t limit = 0;
  };
  std::optional<Wanted> wanted;
};

// The addresses are of any family. None at all, and not `known`: the resolver has failed.
std::vector<std::uint8_t> answer(const Reply::Wanted& wanted, std::span<const policy::IpAddress> addresses, bool known);

// `limit`: the most bytes that the transport takes; over UDP what the query allows counts as well.
//   A, AAAA of an allowed name      its synthetic address
//   PTR of a synthetic address      the name
//   other types of an allowed name  no answer, NOERROR: the name exists (also SVCB and HTTPS, whose hints would lead past the addresses)
//   any other name                  NXDOMAIN
//   another class, the root         REFUSED
// With real answers (Allowlist::real_answers), the addresses of an allowed name are not here to be told: then the reply has no message yet, and `wanted` is set.
Reply respond(std::span<const std::uint8_t> message, const Allowlist& allowlist, SyntheticAddresses& addresses, bool udp);

}  // namespace sandy::proxy::dns
