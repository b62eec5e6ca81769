#include "policy/json_tree.h"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

namespace sandy::policy {
namespace {

constexpr std::size_t kMaxShownKey = 64;
constexpr std::size_t kMaxShownMessage = 200;

std::string cut(std::string_view text, std::size_t size) {
  return text.size() <= size ? std::string(text) : std::string(text.substr(0, size)) + "…";
}

bool plain_name(std::string_view name) {
  if (name.empty() || name.size() > kMaxShownKey) return false;
  for (const char c : name) {
    const bool plain =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    if (!plain) return false;
  }
  return true;
}

// nlohmann's SAX events. A handler that returns false ends the parse, so a limit costs no more than
// the text before it.
class TreeBuilder {
 public:
  using number_integer_t = nlohmann::json::number_integer_t;
  using number_unsigned_t = nlohmann::json::number_unsigned_t;
  using number_float_t = nlohmann::json::number_float_t;
  using string_t = nlohmann::json::string_t;
  using binary_t = nlohmann::json::binary_t;

  TreeBuilder(std::string_view text, std::string_view subject, const JsonLimits& limits)
      : text_(text), subject_(subject), limits_(limits) {}

  bool null() { return add({}); }
  bool boolean(bool value) { return add({value}); }
  bool number_integer(number_integer_t value) {
    return add({JsonNumber{std::to_string(value), true}});
  }
  bool number_unsigned(number_unsigned_t value) {
    return add({JsonNumber{std::to_string(value), true}});
  }
  bool number_float(number_float_t value, const string_t&) {
    if (!std::isfinite(value)) return refuse("not a finite number");
    // Room for the largest double: 309 digits.
    std::array<char, 512> buffer;
    const auto [end, error] = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value,
                                            std::chars_format::fixed);
    if (error != std::errc{}) return refuse("too many digits");
    return add({JsonNumber{std::string(buffer.data(), end), std::trunc(value) == value}});
  }
  bool string(string_t& value) { return check_string(value) && add({std::move(value)}); }
  bool binary(binary_t&) { return refuse("binary data"); }  // never in JSON text

  bool start_object(std::size_t) { return open({JsonValue::Object{}}); }
  bool key(string_t& name) {
    Frame& top = frames_.back();
    if (!check_string(name)) return false;
    top.name = std::move(name);
    if (!top.names.insert(top.name).second) return refuse("the key stands there twice");
    return true;
  }
  bool end_object() { return close(); }
  bool start_array(std::size_t) { return open({JsonValue::Array{}}); }
  bool end_array() { return close(); }

  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception& error) {
    if (error_) return false;
    std::size_t line = 1;
    std::size_t column = 1;
    for (std::size_t i = 0; i + 1 < position && i < text_.size(); ++i) {
      column = text_[i] == '\n' ? 1 : column + 1;
      if (text_[i] == '\n') ++line;
    }
    // "[json.exception.parse_error.101] parse error at line 1, column 2: the cause"
    std::string_view why = error.what();
    if (const auto bracket = why.find("] "); bracket != std::string_view::npos)
      why.remove_prefix(bracket + 2);
    if (why.starts_with("parse error")) {
      if (const auto colon = why.find(": "); colon != std::string_view::npos)
        why.remove_prefix(colon + 2);
    }
    error_ = Error{std::string(subject_) + ": line " + std::to_string(line) + ", column " +
                       std::to_string(column),
                   printable(cut(why, kMaxShownMessage)), ""};
    return false;
  }

  Result<JsonValue> take() {
    if (error_) return std::unexpected(std::move(*error_));
    return std::move(root_);
  }
  bool failed() const { return error_.has_value(); }

 private:
  // An object or array that is still open.
  struct Frame {
    JsonValue value;
    std::string name;  // object: the key whose value comes next
    std::set<std::string>
        names;  // object: a tree, because a hash table's worst case is the attacker's to choose
  };

  std::string path() const {
    std::string out;
    for (const Frame& frame : frames_) {
      const auto* array = frame.value.as<JsonValue::Array>();
      if (array) {
        out = item_key(out, array->size());
      } else if (!frame.name.empty()) {  // empty: before the first key, or between two members
        out = child_key(out, frame.name);
      }
    }
    return out;
  }

  bool refuse(std::string why, std::string fix = {}) {
    std::string where = path();
    error_ = Error{where.empty() ? std::string(subject_) : std::move(where), std::move(why),
                   std::move(fix)};
    return false;
  }

  bool check_string(const std::string& value) {
    if (value.size() > limits_.string_bytes) {
      return refuse("a string of more than " + std::to_string(limits_.string_bytes) + " bytes");
    }
    if (value.find('\0') != std::string::npos) return refuse("a string with a NUL character");
    return true;
  }

  bool count_value() {
    if (++values_ > limits_.values)
      return refuse("more than " + std::to_string(limits_.values) + " values");
    return true;
  }

  bool attach(JsonValue value) {
    if (frames_.empty()) {
      root_ = std::move(value);
    } else if (auto* array = std::get_if<JsonValue::Array>(&frames_.back().value.data)) {
      array->push_back(std::move(value));
    } else {
      auto& object = std::get<JsonValue::Object>(frames_.back().value.data);
      object.emplace_back(std::move(frames_.back().name), std::move(value));
      frames_.back().name.clear();
    }
    return true;
  }

  bool add(JsonValue value) { return count_value() && attach(std::move(value)); }

  bool open(JsonValue value) {
    if (!count_value()) return false;
    if (frames_.size() == limits_.depth) {
      return refuse("nested deeper than " + std::to_string(limits_.depth) + " levels");
    }
    frames_.push_back(Frame{std::move(value), {}, {}});
    return true;
  }

  bool close() {
    JsonValue value = std::move(frames_.back().value);
    frames_.pop_back();
    return attach(std::move(value));
  }

  std::string_view text_, subject_;
  const JsonLimits& limits_;
  std::vector<Frame> frames_;
  std::size_t values_ = 0;
  JsonValue root_;
  std::optional<Error> error_;
};

}  // namespace

const char* type_name(const JsonValue& value) {
  static constexpr std::array kNames{"null",     "a boolean", "a number",
                                     "a string", "an array",  "an object"};
  return kNames[value.data.index()];
}

std::string child_key(std::string_view outer, std::string_view name) {
  std::string out(outer);
  if (!out.empty()) out += '.';
  if (plain_name(name)) return out.append(name);
  return out + '"' + printable(cut(name, kMaxShownKey)) + '"';
}

std::string item_key(std::string_view outer, std::size_t index) {
  return std::string(outer) + '[' + std::to_string(index) + ']';
}

Result<JsonValue> parse_json(std::string_view text, std::string_view subject,
                             const JsonLimits& limits) {
  if (text.size() > limits.bytes) {
    return fail(std::string(subject), "larger than " + std::to_string(limits.bytes) + " bytes");
  }
  if (text.empty()) return fail(std::string(subject), "is empty");
  TreeBuilder builder(text, subject, limits);
  const bool parsed = nlohmann::json::sax_parse(text, &builder);
  if (!parsed && !builder.failed()) return fail(std::string(subject), "not JSON");
  return builder.take();
}

}  // namespace sandy::policy
