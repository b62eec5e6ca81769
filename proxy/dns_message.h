// Messages of the domain name system, RFC 1035, with EDNS, RFC 6891: as much as a server needs that answers by itself. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "policy/ip_address.h"

namespace sandy::proxy::dns {

inline constexpr std::uint16_t kA = 1, kSoa = 6, kPtr = 12, kAaaa = 28, kOpt = 41, kSvcb = 64, kHttps = 65, kAny = 255;
inline constexpr std::uint16_t kInternet = 1;
inline constexpr std::size_t kHeaderBytes = 12;
inline constexpr std::size_t kPlainUdpBytes = 512;  // RFC 1035, section 4.2.1

enum class Rcode : std::uint16_t { no_error = 0, format_error = 1, server_failure = 2, name_error = 3, not_implemented = 4, refused = 5, bad_version = 16 };

struct Query {
  std::uint16_t id = 0;
  bool recursion_desired = false;
  bool checking_disabled = false;
  // The question as it came: an answer repeats it to the letter (case included, which resolvers use as a nonce).
  std::vector<std::uint8_t> question;
  // Labels joined by dots, lower case for ASCII, "" for the root. `plain`: whether no label has a dot or a control character in it, so that the text says all.
  std::string name;
  bool plain = true;
  std::uint16_t type = 0, question_class = 0;
  std::optional<std::uint16_t> edns_bytes;  // what the asker can take over UDP, where it said so; at least 512
};

// The message is no query that can be answered: with `rcode`, or not at all.
struct Refusal {
  std::uint16_t id = 0;
  std::optional<Rcode> rcode;
};

// A query with one question. Anything malformed, a compression pointer in the question, several questions, another operation: a Refusal. A message without a
// header, or that is itself an answer, gets none (two servers would talk for ever).
std::variant<Query, Refusal> parse_query(std::span<const std::uint8_t> message);

struct Answer {
  std::variant<policy::IpAddress, std::string> data;  // an address, or the name of a PTR, of plain labels
  std::uint32_t ttl = 0;
};

// The response, of at most `limit` bytes: one that would be longer has no answers, and the bit that tells to ask over TCP.
std::vector<std::uint8_t> encode_response(const Query& query, Rcode rcode, std::span<const Answer> answers, std::size_t limit);
std::vector<std::uint8_t> encode_refusal(const Refusal& refusal);

// The address that a name below in-addr.arpa or ip6.arpa stands for.
std::optional<policy::IpAddress> reverse_address(std::string_view name);

}  // namespace sandy::proxy::dns
