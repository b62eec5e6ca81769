// A seccomp policy's JSON text, and its fields by type. Pure.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/error.h"

namespace sandy::seccomp {

// The text (policy/json_tree.h, which says what is refused) as a value. `name` is whose text it is, for messages.
Result<nlohmann::json> read_json(std::string_view text, const std::string& name);

// The start of text that came from a file, safe to print and short enough for a message.
std::string excerpt(std::string_view text);

// An error when `object` is no object or has a key that is not listed.
Result<void> check_keys(const nlohmann::json& object, const std::string& where,
                        std::initializer_list<std::string_view> known);

// The string, unsigned number or array at `key`; an error when it is missing or of another type.
Result<std::string> string_at(const nlohmann::json& object, const std::string& where,
                              const char* key, std::size_t max_bytes = 4096);
Result<std::uint64_t> number_at(const nlohmann::json& object, const std::string& where,
                                const char* key, std::uint64_t max);
Result<const nlohmann::json*> array_at(const nlohmann::json& object, const std::string& where,
                                       const char* key, std::size_t max_items);

}  // namespace sandy::seccomp
