// Base64 of RFC 4648 section 4, for the bytes in a policy that are no text.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace sandy::policy {

std::string base64_encode(std::string_view bytes);

// Strict: padded, no white space, no unused bits set, so that each byte string has one spelling.
// nullopt otherwise.
std::optional<std::string> base64_decode(std::string_view text);

}  // namespace sandy::policy
