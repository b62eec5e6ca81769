#include "proxy/http_fields.h"

#include <algorithm>
#include <initializer_list>
#include <set>

namespace sandy::proxy {
namespace {

using Names = std::initializer_list<std::string_view>;

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

std::string lower_case(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(), lower);
  return out;
}

bool is_token_char(char c) {
  if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9')) return true;
  return std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
}

bool is_one_of(std::string_view name, Names names) {
  return std::ranges::any_of(names, [&](std::string_view other) { return same_word(name, other); });
}

bool starts_as(std::string_view name, std::string_view start) { return same_word(name.substr(0, start.size()), start); }

// HTTP2-Settings belongs to an upgrade to h2c, which is never passed on.
bool is_of_connection(std::string_view name) {
  return starts_as(name, "Proxy-") || is_one_of(name, {"Connection", "Keep-Alive", "TE", "Transfer-Encoding", "Content-Length", "Upgrade", "HTTP2-Settings"});
}

}  // namespace

bool same_word(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, [](char x, char y) { return lower(x) == lower(y); });
}

bool is_token(std::string_view text) { return !text.empty() && std::ranges::all_of(text, is_token_char); }

std::string_view trimmed(std::string_view text) {
  while (text.starts_with(' ') || text.starts_with('\t')) text.remove_prefix(1);
  while (text.ends_with(' ') || text.ends_with('\t')) text.remove_suffix(1);
  return text;
}

bool is_field_value(std::string_view text) {
  return std::ranges::none_of(text, [](char c) { return (static_cast<unsigned char>(c) < ' ' && c != '\t') || c == 0x7F; });
}

bool has_item(std::string_view list, std::string_view word) {
  while (!list.empty()) {
    const auto comma = std::min(list.find(','), list.size());
    if (same_word(trimmed(list.substr(0, comma)), word)) return true;
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
  return false;
}

bool has_item(const HttpFields& fields, std::string_view name, std::string_view word) {
  return std::ranges::any_of(fields, [&](const auto& field) { return same_word(field.first, name) && has_item(field.second, word); });
}

bool has_field(const HttpFields& fields, std::string_view name) {
  return std::ranges::any_of(fields, [&](const auto& field) { return same_word(field.first, name); });
}

HttpFields end_to_end(const HttpFields& fields) {
  // The items of all Connection fields. A head has 64 KiB: each is looked at once, and not once a field.
  std::set<std::string, std::less<>> listed;
  for (const auto& [name, value] : fields) {
    if (!same_word(name, "Connection")) continue;
    std::string_view list = value;
    while (!list.empty()) {
      const auto comma = std::min(list.find(','), list.size());
      if (const auto item = trimmed(list.substr(0, comma)); !item.empty()) listed.insert(lower_case(item));
      list.remove_prefix(std::min(comma + 1, list.size()));
    }
  }
  HttpFields out;
  for (const auto& field : fields) {
    if (!is_of_connection(field.first) && !listed.contains(lower_case(field.first))) out.push_back(field);
  }
  return out;
}

bool may_be_trailer(std::string_view name) {
  const bool never = is_one_of(name, {"Host", "Trailer", "Authorization", "WWW-Authenticate", "Authentication-Info", "Cookie", "Set-Cookie", "Cache-Control", "Pragma",
                                      "Expires", "Age", "Date", "Vary", "Location", "Retry-After", "Expect", "Max-Forwards", "Range", "Content-Range",
                                      "Content-Encoding", "Content-Type", "Forwarded", "X-Sandy-Blocked"});
  return !never && !is_of_connection(name) && !starts_as(name, "If-") && !starts_as(name, "X-Forwarded-") && !starts_as(name, "Access-Control-");
}

}  // namespace sandy::proxy
