// Names of hosts, in the one form in which policy, DNS, TLS, HTTP and SOCKS compare them. Pure.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"

namespace sandy::policy {

// RFC 1035, section 2.3.4: 253 characters without the last dot; 63 a label.
inline constexpr std::size_t kMaxHostName = 253, kMaxLabel = 63;

// Lower case, without a dot at the end, and other than ASCII in punycode (IDNA 2008, RFC 5891). Labels of letters, digits, '-' and
// '_', none starting or ending with '-'. The last one is no number, as otherwise resolvers take the whole for an IPv4 address in one of its
// odd spellings (127.1, 0x7f000001). The error's `what` is the name.
Result<std::string> canonical_host_name(std::string_view name);

// Whether anyone can register a name below this canonical one ("com", "co.uk"): the registries' part of the public suffix list. Its other part, of
// companies that give names away ("githubusercontent.com"), is one person's everybody and another one's download server.
bool is_public_suffix(const std::string& name);

// Whether `name` is below `parent`, however deep. Both canonical.
bool is_subdomain(std::string_view name, std::string_view parent);

}  // namespace sandy::policy
