#include "proxy/dns_message.h"

#include <algorithm>
#include <charconv>

#include "proxy/byte_reader.h"

namespace sandy::proxy::dns {
namespace {

constexpr std::uint16_t kResponse = 0x8000, kOpcode = 0x7800, kAuthoritative = 0x0400, kTruncated = 0x0200, kRecursionDesired = 0x0100,
                        kRecursionAvailable = 0x0080, kCheckingDisabled = 0x0010;
constexpr std::size_t kMaxName = 255;  // octets on the wire, RFC 1035 section 2.3.4
constexpr std::size_t kOurUdpBytes = 1232;

void put(std::vector<std::uint8_t>& out, std::uint32_t number, std::size_t width) {
  for (std::size_t i = width; i-- > 0;) out.push_back(static_cast<std::uint8_t>(number >> (8 * i)));
}

struct Name {
  std::string text;
  bool plain = true;
};

// Labels up to the root's, without pointers.
std::optional<Name> read_name(ByteReader& reader) {
  Name out;
  std::size_t octets = 1;
  while (true) {
    const auto length = reader.number(1);
    if (!length) return {};
    if (*length == 0) return out;
    if (*length > 63) return {};  // a pointer, or a kind of label that was never in use
    const auto label = reader.block(*length);
    octets += 1 + *length;
    if (!label || octets > kMaxName) return {};
    if (!out.text.empty()) out.text += '.';
    for (const std::uint8_t byte : *label) {
      out.plain = out.plain && byte > ' ' && byte != 0x7F && byte != '.';
      out.text += static_cast<char>(byte >= 'A' && byte <= 'Z' ? byte - 'A' + 'a' : byte);
    }
  }
}

// Past a name that may end in a pointer, which is not followed.
bool skip_name(ByteReader& reader) {
  while (true) {
    const auto length = reader.number(1);
    if (!length) return false;
    if (*length == 0) return true;
    if (*length >= 0xC0) return reader.block(1).has_value();
    if (*length > 63 || !reader.block(*length)) return false;
  }
}

struct Record {
  bool root = false;
  std::uint32_t type = 0, record_class = 0, ttl = 0;
};

std::optional<Record> read_record(ByteReader& reader) {
  Record out;
  const std::size_t before = reader.size();
  if (!skip_name(reader)) return {};
  out.root = before - reader.size() == 1;
  const auto type = reader.number(2), record_class = reader.number(2), ttl = reader.number(4);
  if (!type || !record_class || !ttl || !reader.counted(2)) return {};
  out.type = *type;
  out.record_class = *record_class;
  out.ttl = *ttl;
  return out;
}

void put_name(std::vector<std::uint8_t>& out, std::string_view name) {
  while (!name.empty()) {
    const auto label = name.substr(0, name.find('.'));
    put(out, static_cast<std::uint32_t>(label.size()), 1);
    out.insert(out.end(), label.begin(), label.end());
    name.remove_prefix(std::min(label.size() + 1, name.size()));
  }
  put(out, 0, 1);
}

}  // namespace

std::variant<Query, Refusal> parse_query(std::span<const std::uint8_t> message) {
  ByteReader reader(message);
  const auto id = reader.number(2), flags = reader.number(2);
  const auto questions = reader.number(2), answers = reader.number(2), authorities = reader.number(2), additionals = reader.number(2);
  if (!additionals || (*flags & kResponse) != 0) return Refusal{};
  Query out;
  out.id = static_cast<std::uint16_t>(*id);
  const auto refuse = [&](Rcode rcode) { return Refusal{out.id, rcode}; };
  if ((*flags & kOpcode) != 0) return refuse(Rcode::not_implemented);
  if (*questions != 1 || *answers != 0 || *authorities != 0) return refuse(Rcode::format_error);
  out.recursion_desired = (*flags & kRecursionDesired) != 0;
  out.checking_disabled = (*flags & kCheckingDisabled) != 0;
  auto name = read_name(reader);
  const auto type = reader.number(2), question_class = reader.number(2);
  if (!name || !question_class) return refuse(Rcode::format_error);
  out.question.assign(message.begin() + kHeaderBytes, message.end() - static_cast<std::ptrdiff_t>(reader.size()));
  out.name = std::move(name->text);
  out.plain = name->plain;
  out.type = static_cast<std::uint16_t>(*type);
  out.question_class = static_cast<std::uint16_t>(*question_class);
  for (std::uint32_t i = 0; i < *additionals; ++i) {
    const auto record = read_record(reader);
    if (!record) return refuse(Rcode::format_error);
    if (record->type != kOpt) continue;  // signatures, say: nothing here is signed
    // RFC 6891, section 6.1.1: one, of the root.
    if (out.edns_bytes || !record->root) return refuse(Rcode::format_error);
    if ((record->ttl >> 16 & 0xFF) != 0) return refuse(Rcode::bad_version);
    out.edns_bytes = static_cast<std::uint16_t>(std::max<std::uint32_t>(record->record_class, kPlainUdpBytes));
  }
  if (!reader.empty()) return refuse(Rcode::format_error);
  return out;
}

std::vector<std::uint8_t> encode_response(const Query& query, Rcode rcode, std::span<const Answer> answers, std::size_t limit) {
  const auto make = [&](std::span<const Answer> shown, bool truncated) {
    std::vector<std::uint8_t> out;
    std::uint32_t flags = kResponse | kAuthoritative | kRecursionAvailable | (static_cast<std::uint32_t>(rcode) & 0xF);
    if (query.recursion_desired) flags |= kRecursionDesired;
    if (query.checking_disabled) flags |= kCheckingDisabled;
    if (truncated) flags |= kTruncated;
    put(out, query.id, 2);
    put(out, flags, 2);
    put(out, 1, 2);
    put(out, static_cast<std::uint32_t>(shown.size()), 2);
    put(out, 0, 2);
    put(out, query.edns_bytes ? 1 : 0, 2);
    out.insert(out.end(), query.question.begin(), query.question.end());
    for (const Answer& answer : shown) {
      put(out, 0xC000 | kHeaderBytes, 2);  // the name in the question
      std::vector<std::uint8_t> data;
      std::uint16_t type = kPtr;
      if (const auto* address = std::get_if<policy::IpAddress>(&answer.data)) {
        type = address->v6 ? kAaaa : kA;
        data.assign(address->bytes.begin(), address->bytes.begin() + address->bits() / 8);
      } else {
        put_name(data, std::get<std::string>(answer.data));
      }
      put(out, type, 2);
      put(out, kInternet, 2);
      put(out, answer.ttl, 4);
      put(out, static_cast<std::uint32_t>(data.size()), 2);
      out.insert(out.end(), data.begin(), data.end());
    }
    if (query.edns_bytes) {
      put(out, 0, 1);
      put(out, kOpt, 2);
      put(out, kOurUdpBytes, 2);
      put(out, (static_cast<std::uint32_t>(rcode) >> 4) << 24, 4);
      put(out, 0, 2);
    }
    return out;
  };
  auto out = make(answers, false);
  return out.size() <= limit ? out : make({}, true);
}

std::vector<std::uint8_t> encode_refusal(const Refusal& refusal) {
  std::vector<std::uint8_t> out;
  if (!refusal.rcode) return out;
  const auto rcode = static_cast<std::uint32_t>(*refusal.rcode);
  put(out, refusal.id, 2);
  put(out, kResponse | (rcode & 0xF), 2);
  put(out, 0, 2);
  put(out, 0, 2);
  put(out, 0, 2);
  put(out, rcode > 0xF ? 1 : 0, 2);
  if (rcode > 0xF) {
    put(out, 0, 1);
    put(out, kOpt, 2);
    put(out, kOurUdpBytes, 2);
    put(out, (rcode >> 4) << 24, 4);
    put(out, 0, 2);
  }
  return out;
}

std::optional<policy::IpAddress> reverse_address(std::string_view name) {
  constexpr std::string_view kIpv4 = ".in-addr.arpa", kIpv6 = ".ip6.arpa";
  policy::IpAddress out;
  std::vector<std::string_view> labels;
  const bool v6 = name.ends_with(kIpv6);
  if (!v6 && !name.ends_with(kIpv4)) return {};
  for (std::string_view rest = name.substr(0, name.size() - (v6 ? kIpv6 : kIpv4).size()); !rest.empty();) {
    const auto label = rest.substr(0, rest.find('.'));
    labels.push_back(label);
    rest.remove_prefix(std::min(label.size() + 1, rest.size()));
  }
  std::ranges::reverse(labels);
  out.v6 = v6;
  if (labels.size() != (v6 ? 32U : 4U)) return {};
  for (std::size_t i = 0; i < labels.size(); ++i) {
    unsigned value = 0;
    const auto& label = labels[i];
    const auto [end, error] = std::from_chars(label.data(), label.data() + label.size(), value, v6 ? 16 : 10);
    if (error != std::errc() || end != label.data() + label.size() || label.empty()) return {};
    if (v6 ? label.size() != 1 : value > 255 || (label.size() > 1 && label[0] == '0')) return {};
    if (v6) {
      out.bytes[i / 2] = static_cast<std::uint8_t>(out.bytes[i / 2] << 4 | value);
    } else {
      out.bytes[i] = static_cast<std::uint8_t>(value);
    }
  }
  return out;
}

}  // namespace sandy::proxy::dns
