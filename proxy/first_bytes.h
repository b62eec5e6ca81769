// What protocol a client speaks, by the first bytes that it sends. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

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
    http,           // a request line of HTTP/1 or 2, or what a lenient server would take for one
    other,
  };

  // A line that is longer is no request line.
  static constexpr std::size_t kMaxLine = 65'536;

  Kind feed(std::span<const std::uint8_t> bytes);
  Kind kind() const { return kind_; }
  // Whether it is text so far: the part that may be passed on after a while, if HTTP that shows up later ends the connection.
  bool is_line() const { return is_line_; }
  // Of a whole ClientHello: the server name in it.
  const std::optional<std::string>& server_name() const { return hello_.server_name(); }

 private:
  Kind feed_line(std::string_view bytes);

  Kind kind_ = Kind::unknown;
  bool is_tls_ = false, is_line_ = false;
  ClientHelloReader hello_;
  std::string line_;  // so far
};

}  // namespace sandy::proxy
