#include "plan/seccomp/strict_json.h"

#include <algorithm>
#include <vector>

namespace sandy::seccomp {
namespace {

using nlohmann::json;

// Builds the value while counting, so that a hostile text is dropped before it costs memory.
class Builder : public nlohmann::json_sax<json> {
 public:
  explicit Builder(const JsonLimits& limits) : limits_(limits) {}

  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(number_integer_t value) override { return add(value); }
  bool number_unsigned(number_unsigned_t value) override { return add(value); }
  bool number_float(number_float_t value, const string_t&) override { return add(value); }
  bool string(string_t& value) override { return add(std::move(value)); }
  bool binary(binary_t&) override { return stop("binary values are not JSON"); }
  bool start_object(std::size_t) override { return open(json::object()); }
  bool start_array(std::size_t) override { return open(json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  bool key(string_t& value) override {
    if (!count()) return false;
    if (open_.back()->contains(value))
      return stop("the key \"" + excerpt(value) + "\" stands twice in one object");
    key_ = std::move(value);
    return true;
  }

  bool parse_error(std::size_t position, const std::string&, const json::exception&) override {
    return stop("not valid JSON (RFC 8259, UTF-8) near byte " + std::to_string(position));
  }

  json take() { return std::move(root_); }
  const std::string& problem() const { return problem_; }

 private:
  bool stop(std::string problem) {
    if (problem_.empty()) problem_ = std::move(problem);
    return false;
  }

  bool count() {
    if (++values_ > limits_.values)
      return stop("more than " + std::to_string(limits_.values) + " values");
    return true;
  }

  json* place(json value) {
    if (open_.empty()) {
      root_ = std::move(value);
      return &root_;
    }
    json& parent = *open_.back();
    if (parent.is_array()) {
      parent.push_back(std::move(value));
      return &parent.back();
    }
    return &(parent[key_] = std::move(value));
  }

  bool add(json value) {
    if (!count()) return false;
    place(std::move(value));
    return true;
  }

  bool open(json value) {
    if (!count()) return false;
    if (open_.size() == limits_.depth)
      return stop("nested more than " + std::to_string(limits_.depth) + " deep");
    open_.push_back(place(std::move(value)));
    return true;
  }

  bool close() {
    open_.pop_back();
    return true;
  }

  const JsonLimits limits_;
  json root_;
  std::vector<json*> open_;  // stays valid: only the innermost container grows
  std::string key_, problem_;
  std::size_t values_ = 0;
};

std::string type_text(const json& value) {
  return std::string("is of type ") + value.type_name();
}

const json* find(const json& object, const char* key) {
  const auto found = object.find(key);
  return found == object.end() ? nullptr : &*found;
}

}  // namespace

Result<json> read_strict_json(std::string_view text, const std::string& name,
                              const JsonLimits& limits) {
  if (text.size() > limits.bytes) {
    return fail(name, "larger than " + std::to_string(limits.bytes) + " bytes");
  }
  Builder builder(limits);
  if (!json::sax_parse(text.begin(), text.end(), &builder)) {
    return fail(name, builder.problem().empty() ? "not valid JSON" : builder.problem());
  }
  return builder.take();
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
