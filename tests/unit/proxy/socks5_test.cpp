#include "proxy/socks5.h"

#include <gtest/gtest.h>

namespace sandy::proxy::socks5 {
namespace {

using Vector = std::vector<std::uint8_t>;

Vector bytes(std::initializer_list<int> numbers) { return {numbers.begin(), numbers.end()}; }

TEST(Socks5, Greetings) {
  const Vector none = bytes({5, 1, 0}), both = bytes({5, 2, 2, 0}), password = bytes({5, 1, 2});
  EXPECT_TRUE(std::get<Greeting>(parse_greeting(none)).offers_none);
  EXPECT_EQ(std::get<Greeting>(parse_greeting(both)).size, 4U);
  EXPECT_TRUE(std::get<Greeting>(parse_greeting(both)).offers_none);
  EXPECT_FALSE(std::get<Greeting>(parse_greeting(password)).offers_none);
  for (const Vector& part : {bytes({}), bytes({5}), bytes({5, 2}), bytes({5, 2, 0})}) EXPECT_TRUE(std::holds_alternative<NeedMore>(parse_greeting(part)));
  for (const Vector& wrong : {bytes({4}), bytes({'G', 'E', 'T'}), bytes({5, 0})}) EXPECT_TRUE(std::holds_alternative<Malformed>(parse_greeting(wrong)));
}

TEST(Socks5, Requests) {
  const Vector named = bytes({5, 1, 0, 3, 3, 'a', '.', 'b', 1, 0xBB, 'x'});
  const auto name = std::get<Request>(parse_request(named));
  EXPECT_EQ(std::get<std::string>(name.host), "a.b");
  EXPECT_EQ(name.port, 443);
  EXPECT_EQ(name.size, 10U);
  const auto v4 = std::get<Request>(parse_request(bytes({5, 1, 0, 1, 1, 2, 3, 4, 0, 80})));
  EXPECT_EQ(std::get<policy::IpAddress>(v4.host).text(), "1.2.3.4");
  const auto v6 = std::get<Request>(parse_request(bytes({5, 1, 0, 4, 0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 22})));
  EXPECT_EQ(std::get<policy::IpAddress>(v6.host).text(), "2001:db8::1");
  EXPECT_EQ(v6.port, 22);
  EXPECT_EQ(std::get<Request>(parse_request(bytes({5, 3, 0, 1, 0, 0, 0, 0, 0, 0}))).command, Command::udp_associate);
  for (std::size_t n = 0; n < named.size() - 1; ++n) {
    EXPECT_TRUE(std::holds_alternative<NeedMore>(parse_request(std::span(named).first(n)))) << n;
  }
}

TEST(Socks5, MalformedOnesAreKnownAtTheFirstByte) {
  const std::pair<Vector, Reply> cases[] = {
      {bytes({4}), Reply::failure},
      {bytes({5, 0}), Reply::command_not_supported},
      {bytes({5, 4}), Reply::command_not_supported},
      {bytes({5, 1, 1}), Reply::failure},
      {bytes({5, 1, 0, 2}), Reply::address_type_not_supported},
      {bytes({5, 1, 0, 3, 0}), Reply::failure},
      {bytes({5, 1, 0, 1, 1, 2, 3, 4, 0, 0}), Reply::failure},
  };
  for (const auto& [request, reply] : cases) {
    const auto got = parse_request(request);
    ASSERT_TRUE(std::holds_alternative<Malformed>(got));
    EXPECT_EQ(std::get<Malformed>(got).reply, reply);
  }
}

TEST(Socks5, Messages) {
  EXPECT_EQ(method_message(Method::none), bytes({5, 0}));
  EXPECT_EQ(method_message(Method::unacceptable), bytes({5, 255}));
  EXPECT_EQ(reply_message(Reply::not_allowed), bytes({5, 2, 0, 1, 0, 0, 0, 0, 0, 0}));
}

}  // namespace
}  // namespace sandy::proxy::socks5
