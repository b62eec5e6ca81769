#include "proxy/socks5.h"

#include <algorithm>

namespace sandy::proxy::socks5 {
namespace {

constexpr std::uint8_t kVersion = 5;
constexpr std::uint8_t kIpv4 = 1, kName = 3, kIpv6 = 4;

}  // namespace

std::variant<NeedMore, Malformed, Greeting> parse_greeting(Bytes bytes) {
  if (bytes.empty()) return NeedMore{};
  if (bytes[0] != kVersion) return Malformed{};
  if (bytes.size() < 2) return NeedMore{};
  const std::size_t count = bytes[1];
  if (count == 0) return Malformed{};
  if (bytes.size() < 2 + count) return NeedMore{};
  const auto methods = bytes.subspan(2, count);
  return Greeting{std::ranges::find(methods, static_cast<std::uint8_t>(Method::none)) != methods.end(), 2 + count};
}

std::variant<NeedMore, Malformed, Request> parse_request(Bytes bytes) {
  // Each byte is judged as soon as it is there: a client of another protocol is not waited for.
  if (bytes.empty()) return NeedMore{};
  if (bytes[0] != kVersion) return Malformed{};
  if (bytes.size() < 2) return NeedMore{};
  if (bytes[1] < 1 || bytes[1] > 3) return Malformed{Reply::command_not_supported};
  if (bytes.size() < 3) return NeedMore{};
  if (bytes[2] != 0) return Malformed{};
  if (bytes.size() < 4) return NeedMore{};
  const std::uint8_t type = bytes[3];
  if (type != kIpv4 && type != kName && type != kIpv6) return Malformed{Reply::address_type_not_supported};
  std::size_t at = 4, length = type == kIpv4 ? 4 : 16;
  if (type == kName) {
    if (bytes.size() < 5) return NeedMore{};
    length = bytes[4];
    if (length == 0) return Malformed{};
    at = 5;
  }
  if (bytes.size() < at + length + 2) return NeedMore{};
  Request out;
  out.command = static_cast<Command>(bytes[1]);
  const auto host = bytes.subspan(at, length);
  if (type == kName) {
    out.host = std::string(host.begin(), host.end());
  } else {
    policy::IpAddress address;
    address.v6 = type == kIpv6;
    std::ranges::copy(host, address.bytes.begin());
    out.host = address;
  }
  at += length;
  out.port = static_cast<std::uint16_t>(bytes[at] << 8 | bytes[at + 1]);
  out.size = at + 2;
  if (out.port == 0 && out.command == Command::connect) return Malformed{};
  return out;
}

std::vector<std::uint8_t> method_message(Method method) { return {kVersion, static_cast<std::uint8_t>(method)}; }

std::vector<std::uint8_t> reply_message(Reply reply) { return {kVersion, static_cast<std::uint8_t>(reply), 0, kIpv4, 0, 0, 0, 0, 0, 0}; }

}  // namespace sandy::proxy::socks5
