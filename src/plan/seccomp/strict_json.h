// A JSON reader for bytes that nobody vetted: bounded in size, depth and count, no duplicate keys.
// Pure.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/error.h"

namespace sandy::seccomp {

struct JsonLimits {
  std::size_t bytes = std::size_t{1} << 20;
  std::size_t depth = 12;       // arrays and objects inside each other
  std::size_t values = 100000;  // of any kind, keys included
};

// RFC 8259 text to a value. Refused: what is beyond the limits, a key that stands twice in one
// object, comments, text that is not UTF-8, anything after the value. `name` is whose text it is,
// for messages.
Result<nlohmann::json> read_strict_json(std::string_view text, const std::string& name,
                                        const JsonLimits& limits = {});

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
