// The first message of TLS, RFC 8446 section 4.1.2: bytes in, the name that is asked for out. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace sandy::proxy {

// Of a ClientHello, split over any number of segments and records.
class ClientHelloReader {
 public:
  enum class State {
    need_more,
    not_tls,    // another protocol's bytes
    malformed,  // begins as TLS does, but is none that a server may accept
    done,
  };

  // A message of more than this is malformed. Real ones with post-quantum keys have some 2 KiB.
  static constexpr std::size_t kMaxMessage = 65'536;

  // Takes the next bytes of the connection. After anything but need_more, further ones change nothing.
  State feed(std::span<const std::uint8_t> bytes);

  State state() const { return state_; }
  // Once done: the host_name of RFC 6066, section 3, as it came; none if the extension is absent.
  const std::optional<std::string>& server_name() const { return server_name_; }

 private:
  State parse_message();

  State state_ = State::need_more;
  std::vector<std::uint8_t> record_;   // the current record's header, or what came of it
  std::size_t record_left_ = 0;        // payload bytes of the current record that are to come
  std::vector<std::uint8_t> message_;  // of the handshake, with its header
  std::optional<std::string> server_name_;
};

}  // namespace sandy::proxy
