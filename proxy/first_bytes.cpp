#include "proxy/first_bytes.h"

#include <algorithm>
#include <string_view>

namespace sandy::proxy {
namespace {

constexpr std::uint8_t kHandshake = 0x16;  // RFC 8446, section 5.1

bool is_text(char c) { return (c >= ' ' && c != 0x7F) || c == '\t' || c == '\r'; }

// Servers take empty lines and blanks before a request line (RFC 9112, section 2.2), and more or less of the blanks within.
bool is_request_line(std::string_view line) {
  while (!line.empty() && (line.back() == '\r' || line.back() == ' ' || line.back() == '\t')) line.remove_suffix(1);
  const auto last = line.find_last_of(" \t");
  if (last == std::string_view::npos) return false;
  const auto version = line.substr(last + 1);
  constexpr std::string_view kName = "http/";
  return version.size() >= kName.size() &&
         std::ranges::equal(version.substr(0, kName.size()), kName, [](char a, char b) { return (a >= 'A' && a <= 'Z' ? static_cast<char>(a - 'A' + 'a') : a) == b; });
}

}  // namespace

FirstBytes::Kind FirstBytes::feed_line(std::string_view bytes) {
  while (!bytes.empty()) {
    const auto end = bytes.find('\n');
    const auto piece = bytes.substr(0, end);
    // A byte that no text has: another protocol, if it comes before the line's end. UTF-8 isn't in request lines.
    if (std::ranges::any_of(piece, [](char c) { return !is_text(c); })) return Kind::other;
    line_ += piece;
    if (line_.size() > kMaxLine) return Kind::other;
    if (end == std::string_view::npos) return Kind::unknown;
    if (std::ranges::any_of(line_, [](char c) { return c != '\r' && c != ' ' && c != '\t'; })) return is_request_line(line_) ? Kind::http : Kind::other;
    line_.clear();
    bytes.remove_prefix(end + 1);
  }
  return Kind::unknown;
}

FirstBytes::Kind FirstBytes::feed(std::span<const std::uint8_t> bytes) {
  if (kind_ != Kind::unknown || bytes.empty()) return kind_;
  if (!is_tls_ && !is_line_) {
    is_tls_ = bytes.front() == kHandshake;
    is_line_ = !is_tls_;
  }
  if (is_tls_) {
    switch (hello_.feed(bytes)) {
      case ClientHelloReader::State::need_more: break;
      case ClientHelloReader::State::done: kind_ = Kind::tls; break;
      case ClientHelloReader::State::not_tls: kind_ = Kind::other; break;
      case ClientHelloReader::State::malformed: kind_ = Kind::malformed_tls; break;
    }
    return kind_;
  }
  kind_ = feed_line({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  if (kind_ != Kind::unknown) line_ = {};
  return kind_;
}

}  // namespace sandy::proxy
