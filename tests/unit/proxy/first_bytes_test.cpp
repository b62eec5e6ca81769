#include "proxy/first_bytes.h"

#include <gtest/gtest.h>

namespace sandy::proxy {
namespace {

using Kind = FirstBytes::Kind;

Kind kind_of(std::string_view bytes, std::size_t segment) {
  FirstBytes first;
  const std::span all(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
  for (std::size_t at = 0; at < all.size(); at += segment) first.feed(all.subspan(at, std::min(segment, all.size() - at)));
  return first.kind();
}

struct Row {
  std::string_view bytes;
  Kind kind;
};

using namespace std::string_view_literals;

TEST(FirstBytes, ByTheFirstLine) {
  const Row rows[] = {
      {"GET / HTTP/1.1\r\n", Kind::http},
      {"GET / HTTP/1.1\n", Kind::http},
      {"\r\nGET / HTTP/1.1\r\n", Kind::http},   // lenient servers pass over empty lines
      {" \r\n\tget / HTTP/1.0 \r\n", Kind::http},
      {"GET / http/1.1\r\n", Kind::http},
      {"PRI * HTTP/2.0\r\n", Kind::http},
      {"G\tx\tHTTP/9\r\n", Kind::http},
      {"GET / HTTP/1.1", Kind::unknown},
      {"GET /", Kind::unknown},
      {"HELLO", Kind::unknown},
      {"\r\n", Kind::unknown},
      {"", Kind::unknown},
      {"SSH-2.0-OpenSSH_9.2\r\n", Kind::other},
      {"EHLO here\r\n", Kind::other},
      {"*1\r\n$4\r\nPING\r\n", Kind::other},
      {"GET /\r\n", Kind::other},  // HTTP/0.9 names no host
      {"0032git-upload-pack /x\0host=a.example\0"sv, Kind::other},
      {"\0\0\0\x08\x04\xd2\x16\x2f"sv, Kind::other},
      // What servers take in a request, though it should not be there.
      {"GET /\xc3\xa9 HTTP/1.1\r\n", Kind::http},
      {"\xef\xbb\xbfGET / HTTP/1.1\r\n", Kind::http},
      {"GET /\x01 HTTP/1.1\r\n", Kind::http},
      {"GET\v/\fHTTP/1.1\r\n", Kind::http},
      {"GET\x1c/\x1fhttp/1.1\n", Kind::http},
      {"GET / HTTP/1.1 and more\r\n", Kind::http},
      {"GET /\0"sv, Kind::http},
      {"USER m\xc3\xbcller\r\n", Kind::other},
      {"GET /x RTSP/1.0\r\n", Kind::http},
      {"SOURCE / ICE/1.0\r\n", Kind::http},
      {"get file/1 now\r\n", Kind::other},
      {"\x15\x03\x03\0\2\1\0"sv, Kind::malformed_tls},  // a warning, and then maybe a ClientHello
      {"\x14\x03\x03\0\1\1"sv, Kind::malformed_tls},
      {"\x15\x01", Kind::other},
      {"\x15", Kind::unknown},
      {"AMQP\0\0\x09\x01"sv, Kind::other},
      {"\x16\x03\x01", Kind::unknown},
      {"\x16GET / HTTP/1.1\r\n\r\n", Kind::malformed_tls},
      {"\x16\x03\x7f", Kind::unknown},  // servers ignore the version's second byte
      {"\x16\x03\x01\0\x05\x02\0\0\1\0"sv, Kind::malformed_tls},
  };
  for (const Row& row : rows) {
    for (const std::size_t segment : {1UZ, 3UZ, 1000UZ}) EXPECT_EQ(kind_of(row.bytes, segment), row.kind) << row.bytes << ", by " << segment;
  }
}

TEST(FirstBytes, ALineWithoutAnEndIsNotWaitedForWithoutEnd) {
  EXPECT_EQ(kind_of(std::string(FirstBytes::kMaxLine, 'a'), 4096), Kind::unknown);
  EXPECT_EQ(kind_of(std::string(FirstBytes::kMaxLine + 1, 'a'), 4096), Kind::other);
  EXPECT_EQ(kind_of(std::string(FirstBytes::kMaxBlank + 1, '\n'), 64), Kind::http) << "to be refused";
  EXPECT_EQ(kind_of("GET /" + std::string(FirstBytes::kMaxLine, 'a'), 4096), Kind::http) << "some servers take longer lines";
}

TEST(FirstBytes, OnlyTlsIsHeld) {
  FirstBytes line, tls;
  const std::uint8_t letter[] = {'a'}, handshake[] = {0x16};
  line.feed(letter);
  tls.feed(handshake);
  EXPECT_TRUE(line.may_pass());
  EXPECT_FALSE(tls.may_pass());
}

}  // namespace
}  // namespace sandy::proxy
