#include "plan/seccomp/json_fields.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "policy/json_tree.h"

namespace sandy::seccomp {
namespace {

using nlohmann::json;

constexpr policy::JsonLimits kLimits{.bytes = std::size_t{1} << 20, .depth = 12, .values = 100'000};

json number_of(const policy::JsonNumber& number) {
  const char* const end = number.text.data() + number.text.size();
  std::uint64_t natural = 0;
  if (const auto [at, error] = std::from_chars(number.text.data(), end, natural); error == std::errc() && at == end) return natural;
  std::int64_t integer = 0;
  if (const auto [at, error] = std::from_chars(number.text.data(), end, integer); error == std::errc() && at == end) return integer;
  double real = 0;
  std::from_chars(number.text.data(), end, real);
  return real;
}

// The tree is at most kLimits.depth deep.
json value_of(policy::JsonValue tree) {
  using Tree = policy::JsonValue;
  return std::visit(
      [](auto&& data) -> json {
        using T = std::decay_t<decltype(data)>;
        if constexpr (std::is_same_v<T, policy::JsonNumber>) {
          return number_of(data);
        } else if constexpr (std::is_same_v<T, Tree::Array>) {
          json out = json::array();
          for (auto& item : data) out.push_back(value_of(std::move(item)));
          return out;
        } else if constexpr (std::is_same_v<T, Tree::Object>) {
          json out = json::object();
          for (auto& [key, item] : data) out[key] = value_of(std::move(item));
          return out;
        } else {
          return json(std::move(data));
        }
      },
      std::move(tree.data));
}

std::string type_text(const json& value) {
  return std::string("is of type ") + value.type_name();
}

const json* find(const json& object, const char* key) {
  const auto found = object.find(key);
  return found == object.end() ? nullptr : &*found;
}

}  // namespace

Result<json> read_json(std::string_view text, const std::string& name) {
  auto tree = policy::parse_json(text, name, kLimits);
  if (tree) return value_of(std::move(*tree));
  Error error = tree.error();
  // Where a key is at fault, it is named without the text.
  if (!error.what.starts_with(name)) error.what = name + (error.what.starts_with('[') ? "" : ".") + error.what;
  return std::unexpected(std::move(error));
}

std::string excerpt(std::string_view text) {
  constexpr std::size_t kMax = 64;
  return text.size() <= kMax ? printable(text) : printable(text.substr(0, kMax)) + "...";
}

Result<void> check_keys(const json& object, const std::string& where,
                        std::initializer_list<std::string_view> known) {
  if (!object.is_object()) return fail(where, type_text(object) + ", must be an object");
  for (const auto& item : object.items()) {
    if (std::ranges::find(known, item.key()) != known.end()) continue;
    std::string keys;
    for (const std::string_view key : known) keys += (keys.empty() ? "" : ", ") + std::string(key);
    return fail(where + "." + excerpt(item.key()), "unknown key", "known keys: " + keys);
  }
  return {};
}

Result<std::string> string_at(const json& object, const std::string& where, const char* key,
                              std::size_t max_bytes) {
  const json* value = find(object, key);
  if (value == nullptr) return fail(where + "." + key, "is missing");
  if (!value->is_string()) return fail(where + "." + key, type_text(*value) + ", must be a string");
  const auto& text = value->get_ref<const std::string&>();
  if (text.size() > max_bytes)
    return fail(where + "." + key, "longer than " + std::to_string(max_bytes) + " bytes");
  return text;
}

Result<std::uint64_t> number_at(const json& object, const std::string& where, const char* key,
                                std::uint64_t max) {
  const json* value = find(object, key);
  if (value == nullptr) return fail(where + "." + key, "is missing");
  if (!value->is_number_unsigned() || value->get<std::uint64_t>() > max) {
    return fail(where + "." + key, "must be a whole number from 0 to " + std::to_string(max));
  }
  return value->get<std::uint64_t>();
}

Result<const json*> array_at(const json& object, const std::string& where, const char* key,
                             std::size_t max_items) {
  const json* value = find(object, key);
  if (value == nullptr) return fail(where + "." + key, "is missing");
  if (!value->is_array()) return fail(where + "." + key, type_text(*value) + ", must be an array");
  if (value->size() > max_items)
    return fail(where + "." + key, "more than " + std::to_string(max_items) + " items");
  return value;
}

}  // namespace sandy::seccomp
