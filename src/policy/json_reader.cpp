#include "policy/json_reader.h"

#include "policy/base64.h"
#include "policy/json_keys.h"
#include "policy/json_tree.h"
#include "policy/sizes.h"

namespace sandy::policy {
namespace {

constexpr std::string_view kSubject = "policy";

// The table is walked with the tree: each member of an object has its row, and the row says what
// may stand there.
class Reader {
 public:
  Result<PolicyDraft> read(const JsonValue& root) {
    const auto* object = root.as<JsonValue::Object>();
    if (!object)
      return fail(std::string(kSubject), std::string(type_name(root)) + " instead of an object");
    // The version comes first: another version's keys would only give misleading messages.
    if (auto ok = version(*object); !ok) return std::unexpected(ok.error());
    if (auto ok = members(*object, ""); !ok) return std::unexpected(ok.error());
    return std::move(draft_);
  }

 private:
  static std::unexpected<Error> wrong_type(const std::string& key, const JsonValue& value,
                                           std::string_view wanted) {
    const bool null = value.as<std::nullptr_t>() != nullptr;
    return fail(key, std::string(type_name(value)) + " instead of " + std::string(wanted),
                null ? "leave the key out to have its default" : "");
  }

  static Result<void> version(const JsonValue::Object& object) {
    for (const auto& [name, value] : object) {
      if (name != "version") continue;
      const auto* number = value.as<JsonNumber>();
      if (!number) return wrong_type("version", value, "the number 1");
      if (number->text != "1") {
        return fail("version: " + number->text,
                    "this program reads version 1 of the policy format");
      }
      return {};
    }
    return fail("version", "missing", "write \"version\": 1");
  }

  Result<void> members(const JsonValue::Object& object, std::string_view path) {
    for (const auto& [name, value] : object) {
      const std::string key = child_key(path, name);
      // A name with a dot is no key of ours, and must not reach into another object's rows.
      const PolicyKey* row = name.find('.') == std::string::npos ? find_key(key) : nullptr;
      if (!row) {
        const std::string meant = nearest_key(path, name);
        return fail(key, "unknown key", meant.empty() ? "" : "did you mean " + meant + "?");
      }
      if (auto ok = member(*row, key, value); !ok) return ok;
    }
    return {};
  }

  Result<void> member(const PolicyKey& row, const std::string& key, const JsonValue& value) {
    switch (row.kind) {
      case KeyKind::version:
        return {};
      case KeyKind::object: {
        const auto* object = value.as<JsonValue::Object>();
        return object ? members(*object, key) : wrong_type(key, value, "an object");
      }
      case KeyKind::seccomp: {
        if (const auto* name = value.as<std::string>()) {
          if (name->size() > kMaxText) return too_long(key);
          draft_.seccomp.base = Text{*name, key};
          return {};
        }
        const auto* object = value.as<JsonValue::Object>();
        return object ? members(*object, key) : wrong_type(key, value, "a string or an object");
      }
      case KeyKind::flag: {
        const auto* flag = value.as<bool>();
        if (!flag) return wrong_type(key, value, "true or false");
        std::get<FlagSlot>(row.slot)(draft_) = Flag{*flag, key};
        return {};
      }
      case KeyKind::text:
      case KeyKind::path:
      case KeyKind::amount:
      case KeyKind::count: {
        auto text = scalar(row.kind, key, value);
        if (!text) return std::unexpected(text.error());
        std::get<TextSlot>(row.slot)(draft_) = std::move(*text);
        return {};
      }
      case KeyKind::paths:
      case KeyKind::texts:
        return list(row, key, value);
      case KeyKind::variables:
        return variables(key, value);
    }
    return fail(key, "unknown kind of key");
  }

  static std::unexpected<Error> too_long(const std::string& key, std::size_t limit = kMaxText) {
    return fail(key, "longer than " + std::to_string(limit) + " bytes");
  }

  static Result<Text> scalar(KeyKind kind, const std::string& key, const JsonValue& value) {
    if (kind == KeyKind::count) {
      const auto* number = value.as<JsonNumber>();
      if (!number || !number->integer) return wrong_type(key, value, "a whole number");
      return Text{number->text, key};
    }
    if (kind == KeyKind::amount) {
      if (const auto* number = value.as<JsonNumber>()) return Text{number->text, key};
    }
    if (kind == KeyKind::path) return bytes(key, value, kMaxText);
    const auto* text = value.as<std::string>();
    if (!text)
      return wrong_type(key, value, kind == KeyKind::amount ? "a number or a string" : "a string");
    if (text->size() > kMaxText) return too_long(key);
    return Text{*text, key};
  }

  // A string, or {"bytes": base64} for what JSON strings can't hold.
  static Result<Text> bytes(const std::string& key, const JsonValue& value, std::size_t limit) {
    if (const auto* text = value.as<std::string>()) {
      if (text->size() > limit) return too_long(key, limit);
      return Text{*text, key};
    }
    const auto* object = value.as<JsonValue::Object>();
    if (!object) return wrong_type(key, value, "a string");
    if (object->size() != 1 || (*object)[0].first != "bytes") {
      return fail(key, "an object other than {\"bytes\": …}",
                  "write a string, or {\"bytes\": \"<base64>\"}");
    }
    const JsonValue& inner = (*object)[0].second;
    const std::string inner_key = child_key(key, "bytes");
    const auto* encoded = inner.as<std::string>();
    if (!encoded) return wrong_type(inner_key, inner, "a string");
    auto decoded = base64_decode(*encoded);
    if (!decoded)
      return fail(quoted(inner_key, *encoded), "not base64", "use RFC 4648 base64 with padding");
    if (decoded->size() > limit) return too_long(key, limit);
    if (decoded->find('\0') != std::string::npos) return fail(key, "contains a NUL byte");
    return Text{std::move(*decoded), key, true};
  }

  Result<void> list(const PolicyKey& row, const std::string& key, const JsonValue& value) {
    const auto* array = value.as<JsonValue::Array>();
    if (!array) return wrong_type(key, value, "an array");
    auto& out = std::get<ListSlot>(row.slot)(draft_);
    for (const JsonValue& item : *array) {
      if (++rules_ > kMaxRules)
        return fail(key, "more than " + std::to_string(kMaxRules) + " entries in all lists");
      const KeyKind kind = row.kind == KeyKind::paths ? KeyKind::path : KeyKind::text;
      auto text = scalar(kind, item_key(key, out.size()), item);
      if (!text) return std::unexpected(text.error());
      out.push_back(std::move(*text));
    }
    return {};
  }

  Result<void> variables(const std::string& key, const JsonValue& value) {
    const auto* object = value.as<JsonValue::Object>();
    if (!object) return wrong_type(key, value, "an object of names and values");
    for (const auto& [name, item] : *object) {
      const std::string variable_key = child_key(key, name);
      auto text = bytes(variable_key, item, kMaxVariableValue);
      if (!text) return std::unexpected(text.error());
      draft_.environment.set.push_back({name, std::move(text->value), variable_key});
    }
    return {};
  }

  PolicyDraft draft_;
  std::size_t rules_ = 0;
};

}  // namespace

Result<PolicyDraft> read_policy(std::string_view json) {
  const auto tree = parse_json(json, kSubject, JsonLimits{.bytes = kMaxPolicyBytes});
  if (!tree) return std::unexpected(tree.error());
  return Reader{}.read(*tree);
}

}  // namespace sandy::policy
