#include "proxy/http_head.h"

#include <algorithm>
#include <charconv>

#include "proxy/http_fields.h"

namespace sandy::proxy {
namespace {

using Error = std::unexpected<std::string>;

constexpr std::size_t kMaxMethod = 32;

class HeadParser {
 public:
  explicit HeadParser(std::string_view head) : rest_(head) {}

  std::expected<HttpHead, std::string> parse() {
    if (const auto error = request_line(next_line())) return Error(*error);
    while (!rest_.empty()) {
      const auto line = next_line();
      if (line.empty()) break;
      if (const auto error = header(line)) return Error(*error);
    }
    if (!rest_.empty()) return Error("bytes behind the head");
    if (const auto error = conclude()) return Error(*error);
    return std::move(out_);
  }

 private:
  using Fault = std::optional<const char*>;

  std::string_view next_line() {
    const auto end = std::min(rest_.find("\r\n"), rest_.size());
    const auto line = rest_.substr(0, end);
    rest_.remove_prefix(std::min(end + 2, rest_.size()));
    return line;
  }

  Fault request_line(std::string_view line) {
    const auto first = line.find(' '), last = line.rfind(' ');
    if (first == std::string_view::npos || first == last) return "the request line is none of METHOD TARGET VERSION";
    const auto method = line.substr(0, first), target = line.substr(first + 1, last - first - 1), version = line.substr(last + 1);
    if (!is_token(method) || method.size() > kMaxMethod) return "the method is no token";
    if (version != "HTTP/1.1" && version != "HTTP/1.0") return "the version is neither HTTP/1.1 nor HTTP/1.0";
    out_.method = method;
    out_.version_1_1 = version == "HTTP/1.1";
    if (std::ranges::any_of(target, [](char c) { return static_cast<unsigned char>(c) <= ' ' || c == 0x7F || c == '#'; })) return "the target has a space, a control character or a #";
    return parse_target(target);
  }

  Fault parse_target(std::string_view target) {
    if (out_.method == "CONNECT") {
      out_.form = TargetForm::authority;
      const auto authority = parse_authority(target);
      if (!authority || !authority->port) return "the target of CONNECT is no HOST:PORT";
      named_ = *authority;
      return {};
    }
    if (target.starts_with('/')) {
      out_.path = target;
      return {};
    }
    if (target == "*") {
      out_.form = TargetForm::asterisk;
      out_.path = target;
      return out_.method == "OPTIONS" ? Fault{} : "the target * is for OPTIONS alone";
    }
    constexpr std::string_view kScheme = "http://";
    if (target.size() < kScheme.size() || !same_word(target.substr(0, kScheme.size()), kScheme)) return "the target is no path and no http: URL";
    target.remove_prefix(kScheme.size());
    const auto end = std::min(target.find_first_of("/?"), target.size());
    const auto authority = parse_authority(target.substr(0, end));
    if (!authority) return "the target's host is no name and no address";
    out_.form = TargetForm::absolute;
    named_ = *authority;
    out_.path = target.substr(end);
    if (!out_.path.starts_with('/')) out_.path.insert(0, "/");
    return {};
  }

  Fault header(std::string_view line) {
    if (line.starts_with(' ') || line.starts_with('\t')) return "a header goes on in a second line";
    const auto colon = line.find(':');
    if (colon == std::string_view::npos || !is_token(line.substr(0, colon))) return "a header is none of NAME: VALUE";
    const auto name = line.substr(0, colon), value = trimmed(line.substr(colon + 1));
    if (!is_field_value(value)) return "a header has a control character";
    if (out_.headers.size() == kMaxHttpHeaders) return "too many headers";
    out_.headers.emplace_back(name, value);
    if (same_word(name, "Host")) return host(value);
    if (same_word(name, "Content-Length")) return content_length(value);
    if (same_word(name, "Transfer-Encoding")) {
      if (out_.chunked) return "two Transfer-Encoding headers";
      if (!same_word(value, "chunked")) return "a Transfer-Encoding other than chunked";
      if (!out_.version_1_1) return "a Transfer-Encoding in HTTP/1.0";
      out_.chunked = true;
    } else if (same_word(name, "Connection")) {
      close_ = close_ || has_item(value, "close");
      keep_alive_ = keep_alive_ || has_item(value, "keep-alive");
      connection_upgrade_ = connection_upgrade_ || has_item(value, "upgrade");
    } else if (same_word(name, "Upgrade")) {
      upgrade_ = true;
    } else if (same_word(name, "Expect")) {
      if (!same_word(value, "100-continue")) return "an Expect other than 100-continue";
      out_.expects_continue = true;
    }
    return {};
  }

  Fault host(std::string_view value) {
    if (host_) return "two Host headers";
    host_ = parse_authority(value);
    return host_ ? Fault{} : "Host is no name and no address";
  }

  Fault content_length(std::string_view value) {
    if (has_length_) return "two Content-Length headers";
    has_length_ = true;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), out_.content_length);
    // 18 digits are more than anybody sends, and no overflow for anybody who counts in 64 bits.
    if (error != std::errc() || end != value.data() + value.size() || value.size() > 18) return "Content-Length is no number";
    return {};
  }

  // Two names for one place: the same host; the same port where both say it, or where one says the default.
  static bool same_place(const Authority& a, const Authority& b, std::uint16_t default_port) {
    return a.host == b.host && a.port.value_or(default_port) == b.port.value_or(default_port);
  }

  Fault conclude() {
    if (out_.chunked && has_length_) return "both Content-Length and Transfer-Encoding";
    if (out_.version_1_1 && !host_) return "no Host";
    if (named_) {
      const std::uint16_t default_port = out_.form == TargetForm::authority ? *named_->port : 80;
      if (host_ && !same_place(*named_, *host_, default_port)) return "Host is not the target's";
      out_.target = *named_;
    } else {
      if (!host_) return "no Host";
      out_.target = *host_;
    }
    if (out_.form == TargetForm::authority && (out_.chunked || out_.content_length != 0)) return "CONNECT with a body";
    out_.keep_alive = !close_ && (out_.version_1_1 || keep_alive_);
    out_.upgrade = connection_upgrade_ && upgrade_;
    return {};
  }

  std::string_view rest_;
  HttpHead out_;
  std::optional<Authority> named_, host_;
  bool has_length_ = false, close_ = false, keep_alive_ = false, connection_upgrade_ = false, upgrade_ = false;
};

}  // namespace

std::expected<std::size_t, std::string> find_http_head(std::string_view bytes, std::size_t looked_at) {
  const auto head = bytes.substr(0, kMaxHttpHead);
  // The last byte again: what may follow a carriage return could not be told before.
  for (std::size_t i = looked_at == 0 ? 0 : looked_at - 1; i < head.size(); ++i) {
    if (head[i] == '\0') return Error("a NUL in the head");
    if (head[i] == '\r' && i + 1 < head.size() && head[i + 1] != '\n') return Error("a carriage return alone");
    if (head[i] != '\n') continue;
    if (i == 0 || head[i - 1] != '\r') return Error("a line feed alone");
    // An empty line: the head's end, or a first one, which some clients sent before a request long ago.
    if (i == 1) return Error("an empty line before the request");
    if (i >= 3 && head[i - 2] == '\n') return i + 1;
  }
  if (bytes.size() >= kMaxHttpHead) return Error(std::string(kHttpHeadTooLong));
  return 0;
}

std::expected<HttpHead, std::string> parse_http_head(std::string_view head) { return HeadParser(head).parse(); }

}  // namespace sandy::proxy
