#include "proxy/client_hello.h"

#include <gtest/gtest.h>

#include <string_view>

namespace sandy::proxy {
namespace {

using Bytes = std::vector<std::uint8_t>;
using State = ClientHelloReader::State;

void put(Bytes& out, std::size_t number, int width) {
  for (int i = width; i-- > 0;) out.push_back(static_cast<std::uint8_t>(number >> (8 * i)));
}
void put(Bytes& out, const Bytes& bytes) { out.insert(out.end(), bytes.begin(), bytes.end()); }
Bytes counted(const Bytes& bytes, int width) {
  Bytes out;
  put(out, bytes.size(), width);
  put(out, bytes);
  return out;
}
Bytes text(std::string_view string) { return {string.begin(), string.end()}; }

Bytes extension(std::size_t type, const Bytes& data) {
  Bytes out;
  put(out, type, 2);
  put(out, counted(data, 2));
  return out;
}

Bytes server_name(std::string_view name, std::uint8_t type = 0) {
  Bytes entry{type};
  put(entry, counted(text(name), 2));
  return extension(0, counted(entry, 2));
}

// The handshake message, of this extensions block; none at all with `without`.
Bytes message(const Bytes& extensions, bool without = false) {
  Bytes body{3, 3};
  body.resize(34, 7);
  put(body, counted(Bytes(32, 1), 1));
  put(body, counted(Bytes{0x0A, 0x0A, 0x13, 1, 0x13, 2}, 2));  // the first is GREASE
  put(body, counted(Bytes{0}, 1));
  if (!without) put(body, counted(extensions, 2));
  Bytes out{1};
  put(out, counted(body, 3));
  return out;
}

// In records of at most `size` bytes.
Bytes records(const Bytes& bytes, std::size_t size = 16'384) {
  Bytes out;
  for (std::size_t at = 0; at < bytes.size(); at += size) {
    out.insert(out.end(), {22, 3, 1});
    put(out, counted(Bytes(bytes.begin() + static_cast<std::ptrdiff_t>(at), bytes.begin() + static_cast<std::ptrdiff_t>(std::min(at + size, bytes.size()))), 2));
  }
  return out;
}

Bytes joined(std::initializer_list<Bytes> parts) {
  Bytes out;
  for (const auto& part : parts) put(out, part);
  return out;
}

ClientHelloReader read(const Bytes& bytes, std::size_t segment) {
  ClientHelloReader reader;
  for (std::size_t at = 0; at < bytes.size(); at += segment) reader.feed(std::span(bytes).subspan(at, std::min(segment, bytes.size() - at)));
  return reader;
}

TEST(ClientHello, InAnyNumberOfSegmentsAndRecords) {
  const Bytes grease = extension(0x1A1A, {}), key_share = extension(51, Bytes(1'300, 9)), padding = extension(21, Bytes(700, 0));
  const Bytes hello = message(joined({grease, key_share, server_name("Example.com"), padding, extension(0x2A2A, {0})}));
  ASSERT_GT(hello.size(), 2'000U);
  for (const std::size_t record : {16'384UL, 1'000UL, 100UL, 1UL}) {
    for (const std::size_t segment : {100'000UL, 1'000UL, 7UL, 1UL}) {
      const auto reader = read(records(hello, record), segment);
      ASSERT_EQ(reader.state(), State::done) << record << ' ' << segment;
      EXPECT_EQ(reader.server_name(), "Example.com");
    }
  }
}

TEST(ClientHello, WithoutAName) {
  for (const Bytes& hello : {message({}), message({}, true), message(extension(43, {2, 3, 4}))}) {
    const auto reader = read(records(hello), 1'000);
    EXPECT_EQ(reader.state(), State::done);
    EXPECT_FALSE(reader.server_name());
  }
}

TEST(ClientHello, WhatFollowsIsNotRead) {
  const auto reader = read(joined({records(message(server_name("a.example"))), Bytes{23, 3, 3, 0, 1, 9}}), 100'000);
  EXPECT_EQ(reader.state(), State::done);
}

TEST(ClientHello, PartsNeedMore) {
  const Bytes whole = records(message(server_name("a.example")), 50);
  for (std::size_t n = 0; n < whole.size(); ++n) {
    EXPECT_EQ(read(Bytes(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(n)), 3).state(), State::need_more) << n;
  }
}

TEST(ClientHello, OtherProtocols) {
  for (const std::string_view first : {"GET / HTTP/1.1\r\n", "SSH-2.0-x\r\n", "\x15\x03\x01", "\x80\x2e\x01"}) {
    EXPECT_EQ(read(text(first), 1).state(), State::not_tls) << first;
  }
}

TEST(ClientHello, TheRecordsVersionIsIgnored) {
  for (const auto& version : {Bytes{3, 5}, Bytes{3, 255}, Bytes{2, 0}, Bytes{9, 9}}) {
    Bytes bytes = records(message(server_name("a.example")));
    bytes[1] = version[0];
    bytes[2] = version[1];
    const auto reader = read(bytes, 1);
    EXPECT_EQ(reader.state(), State::done);
    EXPECT_EQ(reader.server_name(), "a.example");
  }
}

TEST(ClientHello, Malformed) {
  const Bytes name = server_name("a.example");
  Bytes trailing = message(name);
  trailing.push_back(0);
  Bytes two_names{0};
  put(two_names, counted(text("a"), 2));
  put(two_names, joined({Bytes{0}, counted(text("b"), 2)}));
  Bytes huge{1};
  put(huge, ClientHelloReader::kMaxMessage, 3);
  const std::pair<const char*, Bytes> cases[] = {
      {"a name twice", records(message(joined({name, name})))},
      {"two names in one", records(message(extension(0, counted(two_names, 2))))},
      {"an empty name", records(message(server_name("")))},
      {"another type of name", records(message(server_name("a", 1)))},
      {"an empty list", records(message(extension(0, {0, 0})))},
      {"an empty extension", records(message(extension(0, {})))},
      {"a byte behind the list", records(message(extension(0, joined({counted(joined({Bytes{0}, counted(text("a"), 2)}), 2), Bytes{0}}))))},
      {"a byte behind the message", records(trailing)},
      {"an extension that is cut off", records(message({0, 0, 0, 9, 1}))},
      {"another message", records({2, 0, 0, 0})},
      {"a message that is too long", records(huge)},
      {"an empty record", {22, 3, 1, 0, 0}},
      {"a record that is too long", {22, 3, 1, 0x40, 1}},
      {"another record in between", [&] {
         Bytes out = records(message(name), 60);
         out.resize(65);
         put(out, Bytes{23, 3, 3, 0, 1, 0});
         return out;
       }()},
      {"no cipher suite", [] {
         Bytes body{3, 3};
         body.resize(34, 7);
         put(body, joined({Bytes{0}, Bytes{0, 0}, Bytes{1, 0}}));
         return records(joined({Bytes{1}, counted(body, 3)}));
       }()},
  };
  for (const auto& [what, bytes] : cases) {
    EXPECT_EQ(read(bytes, 100'000).state(), State::malformed) << what;
    EXPECT_EQ(read(bytes, 1).state(), State::malformed) << what;
  }
}

}  // namespace
}  // namespace sandy::proxy
