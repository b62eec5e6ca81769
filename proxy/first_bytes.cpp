#include "proxy/first_bytes.h"

#include <algorithm>
#include <string_view>

namespace sandy::proxy {
namespace {

constexpr std::uint8_t kHandshake = 0x16, kFirstRecord = 0x14, kLastRecord = 0x18;  // RFC 8446, section 5.1; RFC 6520

// What some reader or other takes for a blank: Python's str.split() does with all of these.
bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f' || (c >= '\x1C' && c <= '\x1F'); }

// Bytes from 0x80 on are of no protocol's in particular: UTF-8 is in lines of text, and lenient servers take it in a request's target.
bool is_text(char c) { return static_cast<unsigned char>(c) >= 0x80 || (c >= ' ' && c != 0x7F) || is_blank(c); }

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::string_view trimmed(std::string_view line) {
  while (!line.empty() && is_blank(line.front())) line.remove_prefix(1);
  return line;
}

// A word that could be a method, and a blank behind it.
bool starts_as_request(std::string_view line) {
  line = trimmed(line);
  const auto end = std::ranges::find_if(line, is_blank);
  const auto is_letter = [](char c) { return lower(c) >= 'a' && lower(c) <= 'z'; };
  return end != line.end() && end != line.begin() && std::all_of(line.begin(), end, is_letter);
}

// "HTTP/…", and as some servers take for the same, "RTSP/1.0", "ICE/1.0".
bool is_version(std::string_view word) {
  constexpr std::string_view kName = "http/";
  if (std::ranges::equal(word.substr(0, kName.size()), kName, [](char x, char y) { return lower(x) == y; })) return true;
  const auto slash = word.find('/');
  return (slash == 3 || slash == 4) && word.size() >= slash + 4 && is_digit(word[slash + 1]) && word[slash + 2] == '.' && is_digit(word[slash + 3]);
}

// Servers take empty lines and blanks before a request line (RFC 9112, section 2.2), and more or less of the blanks within. A word behind the first that
// is as a version is is enough.
bool is_request_line(std::string_view line) {
  line = trimmed(line);
  for (std::size_t at = 1; at < line.size(); ++at) {
    if (is_blank(line[at - 1]) && is_version(line.substr(at))) return true;
  }
  return false;
}

}  // namespace

FirstBytes::Kind FirstBytes::feed_line(std::string_view bytes) {
  while (!bytes.empty()) {
    const auto end = bytes.find('\n');
    const auto piece = bytes.substr(0, end);
    const auto control = std::ranges::find_if(piece, [](char c) { return !is_text(c); });
    line_.append(piece.begin(), control);
    // A byte that no text has: another protocol's, but in what began as a request it is one that is malformed; and so is a line without an end.
    if (control != piece.end() || line_.size() > kMaxLine) return starts_as_request(line_) ? Kind::http : Kind::other;
    if (end == std::string_view::npos) return Kind::unknown;
    if (!trimmed(line_).empty()) return is_request_line(line_) ? Kind::http : Kind::other;
    blank_ += line_.size() + 1;
    if (blank_ > kMaxBlank) return Kind::http;  // to be refused: nobody's protocol begins so
    line_.clear();
    bytes.remove_prefix(end + 1);
  }
  return Kind::unknown;
}

FirstBytes::Kind FirstBytes::feed(std::span<const std::uint8_t> bytes) {
  if (kind_ != Kind::unknown || bytes.empty()) return kind_;
  if (!is_tls_ && !is_line_ && !is_other_record_) {
    is_tls_ = bytes.front() == kHandshake;
    is_other_record_ = !is_tls_ && bytes.front() >= kFirstRecord && bytes.front() <= kLastRecord;
    is_line_ = !is_tls_ && !is_other_record_;
  }
  if (is_other_record_) {
    // A record of TLS that is no handshake: some servers read on behind it, for a ClientHello.
    head_.insert(head_.end(), bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(std::min<std::size_t>(bytes.size(), 2)));
    if (head_.size() >= 2) kind_ = head_[1] == 3 ? Kind::malformed_tls : Kind::other;
    return kind_;
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
