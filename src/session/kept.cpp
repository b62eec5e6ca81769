#include "session/kept.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "host/kept_socket.h"
#include "policy/base64.h"

namespace sandy::session {
namespace {

using Json = nlohmann::json;

constexpr int kVersion = 1;
constexpr std::size_t kMaxName = 63;

bool is_alphanumeric(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'); }

}  // namespace

std::string to_text(const KeptRecord& record) {
  Json files = Json::array();
  for (const auto& file : record.files) files.push_back(policy::base64_encode(file));  // a path's bytes need not be UTF-8
  const Json out{{"version", kVersion},     {"id", record.id},
                 {"name", record.name},     {"policy", record.policy},
                 {"files", files},          {"socket", policy::base64_encode(record.socket)},
                 {"idle_ms", record.idle_ms}, {"created_ms", record.created_ms},
                 {"pid", record.pid}};
  return out.dump(2) + "\n";
}

std::optional<KeptRecord> read_record(std::string_view text) {
  try {
    const Json json = Json::parse(text);
    if (json.at("version") != kVersion) return {};
    KeptRecord out;
    json.at("id").get_to(out.id);
    json.at("name").get_to(out.name);
    json.at("policy").get_to(out.policy);
    json.at("idle_ms").get_to(out.idle_ms);
    json.at("created_ms").get_to(out.created_ms);
    json.at("pid").get_to(out.pid);
    auto socket = policy::base64_decode(json.at("socket").get<std::string>());
    if (!socket || !is_sandbox_id(out.id)) return {};
    out.socket = std::move(*socket);
    for (const auto& file : json.at("files")) {
      auto path = policy::base64_decode(file.get<std::string>());
      if (!path) return {};
      out.files.push_back(std::move(*path));
    }
    return out;
  } catch (const Json::exception&) {
    return {};  // another version's, or nobody's
  }
}

Result<std::vector<Kept>> kept_sandboxes() {
  const auto state = host::StateDirectory::open();
  if (!state) return std::unexpected(state.error());
  std::vector<Kept> out;
  for (const auto& entry : state->kept()) {
    // One that can't be read (another version's, damaged) is there all the same, to be removed by its id.
    auto record = read_record(entry.record);
    if (!record || record->id != entry.id) {
      record.emplace();
      record->id = entry.id;
    }
    out.push_back({std::move(*record), entry.running});
  }
  std::ranges::stable_sort(out, {}, [](const Kept& kept) { return kept.record.created_ms; });
  return out;
}

Result<Kept> find_kept(std::string_view id_or_name) {
  auto all = kept_sandboxes();
  if (!all) return std::unexpected(all.error());
  for (auto& kept : *all) {
    if (kept.record.id == id_or_name || (!kept.record.name.empty() && kept.record.name == id_or_name)) return std::move(kept);
  }
  return fail("sandbox \"" + printable(id_or_name) + "\"", "there is none of this id or name that was kept", "sandy ps --all lists them");
}

Result<void> remove_kept(const std::string& id) {
  const auto state = host::StateDirectory::open();
  if (!state) return std::unexpected(state.error());
  return state->remove_kept(id);
}

void sweep_kept(const host::StateDirectory& state) {
  std::vector<std::string> running;
  for (auto& entry : state.kept()) {
    if (entry.running) running.push_back(std::move(entry.id));
  }
  host::sweep_kept_sockets(state.path(), running);
}

Result<void> sweep_kept() {
  const auto state = host::StateDirectory::open();
  if (!state) return std::unexpected(state.error());
  if (const auto lock = state->lock_kept(false)) sweep_kept(*state);
  return {};
}

Result<void> check_kept_name(std::string_view name) {
  const bool good = !name.empty() && name.size() <= kMaxName && is_alphanumeric(name.front()) &&
                    std::ranges::all_of(name, [](char c) { return is_alphanumeric(c) || c == '.' || c == '_' || c == '-'; });
  if (!good) return fail("name \"" + printable(name) + "\"", "is no name of a sandbox", "use letters, digits, '.', '_' and '-', the first a letter or digit, at most 63");
  if (is_sandbox_id(name)) return fail("name \"" + printable(name) + "\"", "looks like a sandbox's id", "choose one that is not of 16 hexadecimal digits");
  return {};
}

bool is_sandbox_id(std::string_view text) {
  return text.size() == 16 && std::ranges::all_of(text, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

}  // namespace sandy::session
