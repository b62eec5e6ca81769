#include "policy/host_name.h"

#include <idn2.h>
#include <libpsl.h>

#include <algorithm>
#include <cstdint>
#include <memory>

namespace sandy::policy {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_lower(char c) { return c >= 'a' && c <= 'z'; }
bool is_ascii(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

// As the URL standard's "ends in a number" checker: digits, or 0x and hexadecimal digits.
bool is_number(std::string_view label) {
  if (std::ranges::all_of(label, is_digit)) return true;
  if (!label.starts_with("0x")) return false;
  return std::ranges::all_of(label.substr(2),
                             [](char c) { return is_digit(c) || (c >= 'a' && c <= 'f'); });
}

const char* label_fault(std::string_view label) {
  if (label.empty()) return "has an empty label";
  if (label.size() > kMaxLabel) return "has a label of more than 63 characters";
  if (label.front() == '-' || label.back() == '-') return "has a label that starts or ends with -";
  const bool plain = std::ranges::all_of(
      label, [](char c) { return is_lower(c) || is_digit(c) || c == '-' || c == '_'; });
  return plain ? nullptr : "has a character that host names don't have";
}

}  // namespace

Result<std::string> canonical_host_name(std::string_view name) {
  const std::string what = '"' + printable(name.substr(0, 256)) + '"';
  std::string out(name);
  if (out.find('\0') != std::string::npos) return fail(what, "has a NUL character");
  // Four bytes a character, at most, in UTF-8.
  if (out.size() > 4 * kMaxHostName + 1) return fail(what, "longer than a name can be");
  if (!is_ascii(out)) {
    char* converted = nullptr;
    const int status = ::idn2_to_ascii_8z(out.c_str(), &converted,
                                          IDN2_NFC_INPUT | IDN2_NONTRANSITIONAL);
    const std::unique_ptr<char, void (*)(void*)> owned(converted, ::idn2_free);
    if (status != IDN2_OK) return fail(what, std::string("no name by IDNA: ") + ::idn2_strerror(status));
    out = converted;
  }
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  if (out.ends_with('.')) out.pop_back();
  if (out.empty()) return fail(what, "an empty name");
  if (out.size() > kMaxHostName) return fail(what, "longer than a name can be");
  std::string_view rest = out, last;
  while (true) {
    const auto dot = rest.find('.');
    last = rest.substr(0, dot);
    if (const char* fault = label_fault(last)) return fail(what, fault);
    if (dot == std::string_view::npos) break;
    rest.remove_prefix(dot + 1);
  }
  if (is_number(last)) return fail(what, "ends with a number, as addresses do");
  return out;
}

bool is_public_suffix(const std::string& name) {
  return ::psl_is_public_suffix2(::psl_builtin(), name.c_str(), PSL_TYPE_ICANN) != 0;
}

bool is_subdomain(std::string_view name, std::string_view parent) {
  return name.size() > parent.size() + 1 && name.ends_with(parent) &&
         name[name.size() - parent.size() - 1] == '.';
}

}  // namespace sandy::policy
