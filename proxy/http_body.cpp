#include "proxy/http_body.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

namespace sandy::proxy {

namespace {

// 15 digits are more than anybody sends, and no overflow for anybody who counts in 64 bits.
constexpr std::size_t kMaxSizeDigits = 15;
constexpr std::size_t kMaxTrailerFields = 64;

}  // namespace

BodyReader::BodyReader(Framing framing, std::uint64_t length) : framing_(framing), left_(length) {
  if (framing == Framing::none || (framing == Framing::length && length == 0)) state_ = State::done;
  if (framing == Framing::chunked) state_ = State::size_line;
}

std::expected<std::size_t, std::string> BodyReader::feed(std::string_view bytes, std::string& body) {
  std::size_t taken = 0;
  while (taken < bytes.size() && !done()) {
    const auto rest = bytes.substr(taken);
    if (state_ == State::data) {
      taken += take_data(rest, body);
      continue;
    }
    const auto line_bytes = take_line(rest);
    if (!line_bytes) return line_bytes;
    taken += *line_bytes;
  }
  return taken;
}

std::size_t BodyReader::take_data(std::string_view bytes, std::string& body) {
  if (framing_ == Framing::close) {
    body += bytes;
    return bytes.size();
  }
  const auto size = static_cast<std::size_t>(std::min<std::uint64_t>(left_, bytes.size()));
  body += bytes.substr(0, size);
  left_ -= size;
  if (left_ == 0) state_ = framing_ == Framing::chunked ? State::data_end : State::done;
  return size;
}

std::size_t BodyReader::max_line() const {
  if (state_ == State::data_end) return 2;
  return state_ == State::size_line ? kMaxSizeLine : kMaxTrailers - trailer_bytes_;
}

std::expected<std::size_t, std::string> BodyReader::take_line(std::string_view bytes) {
  const auto end = bytes.find('\n');
  const auto piece = bytes.substr(0, end == std::string_view::npos ? bytes.size() : end + 1);
  if (line_.size() + piece.size() > max_line()) return std::unexpected("a chunk's line or trailers are over-long, or a chunk is longer than its size");
  line_ += piece;
  if (end == std::string_view::npos) return piece.size();
  if (!line_.ends_with("\r\n")) return std::unexpected("a line of a chunked body ends other than in CR LF");
  const auto text = std::exchange(line_, {});
  if (const Fault fault = line(std::string_view(text).substr(0, text.size() - 2))) return std::unexpected(fault);
  return piece.size();
}

BodyReader::Fault BodyReader::line(std::string_view text) {
  if (!is_field_value(text)) return "a chunk's line has a control character";
  switch (state_) {
    case State::size_line:
      return size_line(text);
    case State::trailer_line:
      return trailer_line(text);
    default:
      // Behind a chunk's data; take_line lets no other text than the empty one come here.
      state_ = State::size_line;
      return nullptr;
  }
}

BodyReader::Fault BodyReader::size_line(std::string_view text) {
  const auto digits = text.substr(0, std::min(text.find(';'), text.size()));
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), left_, 16);
  if (error != std::errc() || end != digits.data() + digits.size() || digits.size() > kMaxSizeDigits) return "a chunk's size is no number";
  state_ = left_ == 0 ? State::trailer_line : State::data;
  return nullptr;
}

BodyReader::Fault BodyReader::trailer_line(std::string_view text) {
  if (text.empty()) {
    state_ = State::done;
    return nullptr;
  }
  trailer_bytes_ += text.size() + 2;
  const auto colon = text.find(':');
  if (colon == std::string_view::npos || !is_token(text.substr(0, colon))) return "a trailer is none of NAME: VALUE";
  if (trailers_.size() == kMaxTrailerFields) return "too many trailers";
  const auto name = text.substr(0, colon);
  if (may_be_trailer(name)) trailers_.emplace_back(name, trimmed(text.substr(colon + 1)));
  return nullptr;
}

void BodyWriter::piece(std::string& out, std::string_view data) const {
  if (data.empty()) return;  // a chunk of size 0 would be the last
  if (framing_ != Framing::chunked) {
    out += data;
    return;
  }
  std::array<char, 16> digits;
  out.append(digits.data(), std::to_chars(digits.data(), digits.data() + digits.size(), data.size(), 16).ptr);
  out += "\r\n";
  out += data;
  out += "\r\n";
}

void BodyWriter::end(std::string& out, const HttpFields& trailers) const {
  if (framing_ != Framing::chunked) return;
  out += "0\r\n";
  for (const auto& [name, value] : trailers) out += name + ": " + value + "\r\n";
  out += "\r\n";
}

}  // namespace sandy::proxy
