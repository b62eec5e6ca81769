#include "verify/secret_names.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string>

namespace sandy::verify {

bool may_be_secret(std::string_view written) {
  std::string name(written);
  std::ranges::transform(name, name.begin(), [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  static constexpr std::array<std::string_view, 9> kParts{"KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "CREDENTIAL", "COOKIE", "_AUTH"};
  static constexpr std::array<std::string_view, 9> kNames{"SSH_AUTH_SOCK", "DBUS_SESSION_BUS_ADDRESS", "KUBECONFIG", "DOCKER_HOST", "GPG_AGENT_INFO",
                                                          "XAUTHORITY",    "DATABASE_URL",             "PGPASSFILE", "NETRC"};
  return std::ranges::find(kNames, name) != kNames.end() || name == "PAT" || name.ends_with("_PAT") ||
         std::ranges::any_of(kParts, [&](std::string_view part) { return name.find(part) != std::string::npos; });
}

std::uint64_t digest(std::string_view value) {
  std::uint64_t out = 14'695'981'039'346'656'037U;
  for (const char c : value) out = (out ^ static_cast<unsigned char>(c)) * 1'099'511'628'211U;
  return out;
}

}  // namespace sandy::verify
