// The header fields of HTTP, RFC 9110 section 5: their grammar, and which of them a proxy passes on. Pure.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sandy::proxy {

using HttpFields = std::vector<std::pair<std::string, std::string>>;  // name and value

bool same_word(std::string_view a, std::string_view b);  // ASCII, without regard to case
bool is_token(std::string_view text);                    // section 5.6.2
std::string_view trimmed(std::string_view text);         // without spaces and tabs at its ends
bool is_field_value(std::string_view text);              // no control characters but tabs
bool has_item(std::string_view list, std::string_view word);  // of a list with commas, section 5.6.1

// Whether any field `name` has `word` in its list.
bool has_item(const HttpFields& fields, std::string_view name, std::string_view word);
bool has_field(const HttpFields& fields, std::string_view name);

// Those that are for the other end (RFC 9110, section 7.6.1), in their order: without Connection and what it lists, without those about one connection or one
// message's framing, which whoever forwards the message says anew.
HttpFields end_to_end(const HttpFields& fields);

// Whether a field means anything after a body (RFC 9110, section 6.5.1). What frames, routes, authenticates or changes how a message is taken does not.
bool may_be_trailer(std::string_view name);

}  // namespace sandy::proxy
