// A TCP port in text. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace sandy::policy {

// 1 to 65535 in decimal digits, without zeros in front. None: anything else.
std::optional<std::uint16_t> parse_port(std::string_view digits);

}  // namespace sandy::policy
