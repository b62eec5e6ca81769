// Which variables of an environment may hold what nobody else is to have, by their names. Pure.
#pragma once

#include <cstdint>
#include <string_view>

namespace sandy::verify {

bool may_be_secret(std::string_view name);

// FNV-1a, as sandy-attack tells a value.
std::uint64_t digest(std::string_view value);

}  // namespace sandy::verify
