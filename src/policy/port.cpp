#include "policy/port.h"

#include <charconv>

namespace sandy::policy {

std::optional<std::uint16_t> parse_port(std::string_view digits) {
  std::uint16_t port = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  if (error != std::errc() || end != digits.data() + digits.size() || digits.front() == '0') return {};
  return port;
}

}  // namespace sandy::policy
