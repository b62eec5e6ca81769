// What protocol a client speaks, by the first bytes that it sends. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "proxy/client_hello.h"

namespace sandy::proxy {

// TLS and HTTP/1 name the host that they are for within, which has to be judged before a byte goes on. Everything else passes as it is. A client that
// sends a line of text may yet turn out to speak HTTP when the line ends: it is held until then.
class FirstBytes {
 public:
  enum class Kind {
    unknown,        // need more
    tls,            // a whole ClientHello
    malformed_tls,  // begins as TLS does, and is none
    http,           // a request line of HTTP/1 or 2, what a lenient server would take for one, or a malformed one: to be judged, and maybe refused, as such
    other,
  };

  // A line that is longer is no request line.
  static constexpr std::size_t kMaxLine = 65'536;
  static constexpr std::size_t kMaxBlank = 4'096;  // in lines before the first that isn't empty

  Kind feed(std::span<const std::uint8_t> bytes);
  Kind kind() const { return kind_; }
  // Whether what has come may be passed on after a while, if what shows up later can still end the connection: a line of text, a byte of who knows what.
  bool may_pass() const { return is_line_ || is_other_record_; }
  // Of a whole ClientHello: the server name in it.
  const std::optional<std::string>& server_name() const { return hello_.server_name(); }

 private:
  Kind feed_line(std::string_view bytes);

  Kind kind_ = Kind::unknown;
  bool is_tls_ = false, is_line_ = false, is_other_record_ = false;
  std::vector<std::uint8_t> head_;  // of another record
  std::size_t blank_ = 0;
  ClientHelloReader hello_;
  std::string line_;  // so far
};

}  // namespace sandy::proxy
