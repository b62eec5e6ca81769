// The bodies of HTTP/1 messages, RFC 9112 sections 6 and 7: taken out of one framing, put into another. Nothing of the first framing is copied. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <string>
#include <string_view>

#include "proxy/http_fields.h"

namespace sandy::proxy {

enum class Framing {
  none,
  length,   // Content-Length
  chunked,
  close,    // all until the connection's end: responses alone
};

// Strict, as a body that two readers end at different places hides a second message: no white space about a chunk's size, no line that ends other than in
// CR LF, no control characters in extensions.
class BodyReader {
 public:
  static constexpr std::size_t kMaxSizeLine = 300;     // a chunk's size and extensions
  static constexpr std::size_t kMaxTrailers = 16'384;  // all of them

  explicit BodyReader(Framing framing, std::uint64_t length = 0);

  // Takes from the front of `bytes`, and appends what is body to `body`. How many were taken: all, or those until the body's end. The error is a sentence.
  std::expected<std::size_t, std::string> feed(std::string_view bytes, std::string& body);

  bool done() const { return state_ == State::done; }
  // Whether the connection's end, now, is the body's.
  bool may_end() const { return done() || framing_ == Framing::close; }
  // Once done: those that mean anything there.
  const HttpFields& trailers() const { return trailers_; }

 private:
  enum class State { data, size_line, data_end, trailer_line, done };
  using Fault = const char*;  // none: nullptr

  std::size_t take_data(std::string_view bytes, std::string& body);
  std::expected<std::size_t, std::string> take_line(std::string_view bytes);
  std::size_t max_line() const;
  Fault line(std::string_view text);
  Fault size_line(std::string_view text);
  Fault trailer_line(std::string_view text);

  Framing framing_;
  State state_ = State::data;
  std::uint64_t left_ = 0;  // of a length's or a chunk's data
  std::string line_;        // begun
  std::size_t trailer_bytes_ = 0;
  HttpFields trailers_;
};

class BodyWriter {
 public:
  explicit BodyWriter(Framing framing) : framing_(framing) {}

  // Append to `out`.
  void piece(std::string& out, std::string_view data) const;
  void end(std::string& out, const HttpFields& trailers) const;

 private:
  Framing framing_;
};

}  // namespace sandy::proxy
