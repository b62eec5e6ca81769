#include "policy/json_keys.h"

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "policy_testing.h"

namespace sandy::policy {
namespace {

TEST(NearestKey, FindsTyposAndMisplacedKeys) {
  EXPECT_EQ(nearest_key("limits", "memroy"), "limits.memory");
  EXPECT_EQ(nearest_key("", "enviroment"), "environment");
  EXPECT_EQ(nearest_key("", "memory"), "limits.memory");
  EXPECT_EQ(nearest_key("", "hostname"), "process.hostname");
  EXPECT_EQ(nearest_key("filesystem", "readonly"), "");
  EXPECT_EQ(nearest_key("", "zzzzzzzz"), "");
  EXPECT_EQ(nearest_key("", ""), "");
  EXPECT_EQ(nearest_key("", std::string(60'000, 'm')), "");
}

// One line a key, from the schema: "limits.memory amount".
void collect(const nlohmann::json& schema, const std::string& path,
             std::map<std::string, std::string>& out) {
  ASSERT_EQ(schema.at("additionalProperties"), false) << path;
  for (const auto& [name, value] : schema.at("properties").items()) {
    const std::string key = path.empty() ? name : path + "." + name;
    std::string kind;
    if (value.contains("$ref")) {
      const std::string ref = value["$ref"];
      ASSERT_TRUE(ref.starts_with("#/$defs/")) << ref;
      kind = ref.substr(8);
    } else if (value.contains("properties")) {
      kind = value.at("type") == "object" ? "object" : "string or object";
      collect(value, key, out);
    } else if (value.contains("enum")) {
      kind = "string";
    } else if (value.contains("const")) {
      kind = "const " + value["const"].dump();
    } else {
      kind = value.at("type");
    }
    out[key] = kind;
  }
}

std::string schema_kind(KeyKind kind) {
  switch (kind) {
    case KeyKind::version:
      return "const 1";
    case KeyKind::object:
      return "object";
    case KeyKind::seccomp:
      return "string or object";
    case KeyKind::flag:
      return "boolean";
    case KeyKind::text:
      return "string";
    case KeyKind::path:
      return "path";
    case KeyKind::paths:
      return "paths";
    case KeyKind::texts:
      return "texts";
    case KeyKind::amount:
      return "amount";
    case KeyKind::count:
      return "count";
    case KeyKind::variables:
      return "variables";
  }
  return "?";
}

TEST(PolicySchema, HasTheReadersKeys) {
  std::ifstream file(SANDY_POLICY_SCHEMA);
  ASSERT_TRUE(file) << SANDY_POLICY_SCHEMA;
  const auto schema = nlohmann::json::parse(file);
  EXPECT_EQ(schema.at("required"), nlohmann::json::array({"version"}));
  std::map<std::string, std::string> from_schema;
  collect(schema, "", from_schema);
  std::map<std::string, std::string> from_table;
  for (const PolicyKey& key : policy_keys())
    from_table[std::string(key.path)] = schema_kind(key.kind);
  EXPECT_EQ(from_schema, from_table);
  EXPECT_EQ(from_table.size(), policy_keys().size()) << "a key stands in the table twice";
}

// The enumerations too: what the schema lists is valid, one of each.
TEST(PolicySchema, ListsTheWordsThatValidateKnows) {
  std::ifstream file(SANDY_POLICY_SCHEMA);
  const auto schema = nlohmann::json::parse(file);
  const auto words = [&](const char* pointer) {
    return schema.at(nlohmann::json::json_pointer(pointer)).get<std::vector<std::string>>();
  };
  EXPECT_THAT(words("/properties/filesystem/properties/workspace/properties/mode/enum"),
              testing::ElementsAre("private", "bind"));
  for (const std::string& mode : words("/properties/network/properties/mode/enum")) {
    const auto policy = policy_of(policy_json("\"network\": {\"mode\": \"" + mode + "\"}"));
    EXPECT_TRUE(policy || policy.error().why.find("gateway") != std::string::npos)
        << policy.error().text();
  }
  for (const std::string& base : words("/properties/seccomp/then/enum")) {
    EXPECT_TRUE(policy_of(policy_json("\"seccomp\": \"" + base + "\"")));
  }
  EXPECT_EQ(words("/properties/seccomp/then/enum"),
            words("/properties/seccomp/properties/base/enum"));
}

// A slot that points at the wrong member would only show in a sandbox.
TEST(PolicyKeys, EachHasASlotOfItsOwn) {
  PolicyDraft draft;
  std::map<const void*, std::string_view> seen;
  for (const PolicyKey& key : policy_keys()) {
    const void* slot = nullptr;
    if (const auto* text = std::get_if<TextSlot>(&key.slot)) slot = &(*text)(draft);
    if (const auto* flag = std::get_if<FlagSlot>(&key.slot)) slot = &(*flag)(draft);
    if (const auto* list = std::get_if<ListSlot>(&key.slot)) slot = &(*list)(draft);
    const bool needs_none = key.kind == KeyKind::version || key.kind == KeyKind::object ||
                            key.kind == KeyKind::seccomp || key.kind == KeyKind::variables;
    EXPECT_EQ(slot == nullptr, needs_none) << key.path;
    if (!slot) continue;
    EXPECT_TRUE(seen.emplace(slot, key.path).second) << key.path << " and " << seen[slot];
  }
  EXPECT_EQ(seen.size(), 34U);
}

}  // namespace
}  // namespace sandy::policy
