#include "session/command_result.h"

#include <cstdint>
#include <string>

#include "base/error.h"

namespace sandy::session {
namespace {

using wire::Json;

constexpr std::size_t kLongestWord = 64, kLongestDetail = 2'000;
constexpr std::uint64_t kLargest = 1ULL << 53;  // that every reader of JSON takes for the same number
constexpr std::uint64_t kLastCode = 255, kLastSignal = 64, kLastErrno = 4'095;

struct Number {
  const char* key;
  std::uint64_t most;
};
constexpr Number kNumbers[] = {{"code", kLastCode},      {"signal", kLastSignal}, {"errno", kLastErrno},       {"wall_ms", kLargest},
                               {"user_ms", kLargest},    {"system_ms", kLargest}, {"max_rss_kib", kLargest},   {"memory_kills", kLargest}};

bool copy_number(const Json& from, Json& to, const char* key, std::uint64_t most) {
  const auto found = from.find(key);
  if (found == from.end() || !found->is_number_unsigned() || found->get<std::uint64_t>() > most) return false;
  to[key] = *found;
  return true;
}

void copy_text(const Json& from, Json& to, const char* key, std::size_t most) {
  const auto found = from.find(key);
  if (found != from.end() && found->is_string()) to[key] = printable(found->get_ref<const std::string&>().substr(0, most));
}

bool is_whole(const Json& end) {
  const auto found = end.find("reason");
  if (found == end.end()) return end.contains("error");
  const auto& reason = found->get_ref<const std::string&>();
  if (reason == "exited") return end.contains("code");
  if (reason == "signalled") return end.contains("signal") && end["signal"] != 0;
  if (reason == "could_not_start") return end.contains("code") && end.contains("errno");
  return reason == "timed_out" || reason == "cancelled";
}

}  // namespace

Json command_result(const Json& end) {
  Json out = Json::object();
  for (const char* key : {"id", "ev"}) {
    if (const auto found = end.find(key); found != end.end()) out[key] = *found;
  }
  for (const auto& number : kNumbers) copy_number(end, out, number.key, number.most);
  for (const char* key : {"core", "cwd"}) {
    if (const auto found = end.find(key); found != end.end() && found->is_boolean()) out[key] = *found;
  }
  copy_text(end, out, "reason", kLongestWord);
  copy_text(end, out, "error", kLongestWord);
  copy_text(end, out, "killed", kLongestWord);
  copy_text(end, out, "detail", kLongestDetail);
  Json omitted = Json::object();
  if (const auto found = end.find("omitted"); found != end.end() && found->is_object()) {
    for (const char* key : {"stdout", "stderr"}) copy_number(*found, omitted, key, kLargest);
  }
  out["omitted"] = std::move(omitted);
  if (is_whole(out)) return out;
  for (const char* key : {"reason", "detail"}) out.erase(key);
  out["error"] = "agent";
  out["detail"] = "the sandbox's agent did not say how the command ended";
  return out;
}

}  // namespace sandy::session
