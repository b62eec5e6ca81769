// JSON text (RFC 8259) from outside, as a small tree, in bounded time and memory: strict UTF-8, no
// duplicate keys, no comments, no numbers that overflow, no NUL in strings, and limits on size,
// depth, string length and the number of values.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/error.h"

namespace sandy::policy {

struct JsonLimits {
  std::size_t bytes = 1024 * 1024;
  std::size_t depth = 16;             // of objects and arrays; the outermost is 1
  std::size_t string_bytes = 65'536;  // keys and strings, decoded
  std::size_t values = 32'768;
};

struct JsonNumber {
  std::string text;      // decimal without exponent: "3", "-1", "1.5"
  bool integer = false;  // has no fraction
};

struct JsonValue {
  using Array = std::vector<JsonValue>;
  using Object = std::vector<std::pair<std::string, JsonValue>>;  // in the order of the text
  std::variant<std::nullptr_t, bool, JsonNumber, std::string, Array, Object> data = nullptr;

  template <typename T>
  const T* as() const {
    return std::get_if<T>(&data);
  }
};

// "null", "a boolean", "a number", "a string", "an array" or "an object".
const char* type_name(const JsonValue& value);

// "outer.name", or "name" where there is no outer; a name that is not plain is quoted and escaped.
std::string child_key(std::string_view outer, std::string_view name);
// "outer[index]"
std::string item_key(std::string_view outer, std::size_t index);

// The error names the key path where it has one, and otherwise line and column. `subject` stands
// for the whole text.
Result<JsonValue> parse_json(std::string_view text, std::string_view subject,
                             const JsonLimits& limits = {});

}  // namespace sandy::policy
