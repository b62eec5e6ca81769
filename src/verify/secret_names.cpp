#include "verify/secret_names.h"

#include <algorithm>
#include <array>

namespace sandy::verify {

bool may_be_secret(std::string_view name) {
  static constexpr std::array<std::string_view, 8> kParts{"KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL", "COOKIE", "_AUTH"};
  static constexpr std::array<std::string_view, 9> kNames{"SSH_AUTH_SOCK", "DBUS_SESSION_BUS_ADDRESS", "KUBECONFIG", "DOCKER_HOST", "GPG_AGENT_INFO",
                                                          "XAUTHORITY",    "DATABASE_URL",             "PGPASSFILE", "NETRC"};
  return std::ranges::find(kNames, name) != kNames.end() ||
         std::ranges::any_of(kParts, [&](std::string_view part) { return name.find(part) != std::string_view::npos; });
}

std::uint64_t digest(std::string_view value) {
  std::uint64_t out = 14'695'981'039'346'656'037U;
  for (const char c : value) out = (out ^ static_cast<unsigned char>(c)) * 1'099'511'628'211U;
  return out;
}

}  // namespace sandy::verify
