#include "policy/network_rule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sandy::policy {
namespace {

using testing::HasSubstr;

TEST(IpAddress, OnlyTheUsualSpellings) {
  const std::pair<std::string, std::string> cases[] = {
      {"1.2.3.4", "1.2.3.4"},
      {"255.255.255.255", "255.255.255.255"},
      {"::", "::"},
      {"2001:DB8:0:0:0:0:0:1", "2001:db8::1"},
      {"::ffff:1.2.3.4", "::ffff:1.2.3.4"},
  };
  for (const auto& [text, same] : cases) {
    const auto got = parse_ip_address(text);
    ASSERT_TRUE(got) << text;
    EXPECT_EQ(got->text(), same);
  }
  for (const std::string& text :
       {std::string(""), std::string("1.2.3"), std::string("127.1"), std::string("01.2.3.4"), std::string("1.2.3.256"), std::string("0x7f.0.0.1"),
        std::string("1.2.3.4 "), std::string(" 1.2.3.4"), std::string("1.2.3.4\0", 8), std::string("fe80::1%lo"), std::string("[::1]"), std::string(":::"),
        std::string("1::2::3"), std::string("2130706433"), std::string(1000, '1')}) {
    EXPECT_FALSE(parse_ip_address(text)) << text;
  }
}

TEST(IpNetwork, Contains) {
  const auto in = [](const char* network, const char* address) { return parse_ip_network(network)->contains(*parse_ip_address(address)); };
  EXPECT_TRUE(in("10.0.0.0/8", "10.255.255.255"));
  EXPECT_FALSE(in("10.0.0.0/8", "11.0.0.0"));
  EXPECT_TRUE(in("172.16.0.0/12", "172.31.255.255"));
  EXPECT_FALSE(in("172.16.0.0/12", "172.32.0.0"));
  EXPECT_TRUE(in("0.0.0.0/0", "1.2.3.4"));
  EXPECT_FALSE(in("0.0.0.0/0", "::1"));
  EXPECT_TRUE(in("1.2.3.4/32", "1.2.3.4"));
  EXPECT_FALSE(in("1.2.3.4/32", "1.2.3.5"));
  EXPECT_TRUE(in("2001:db8::/33", "2001:db8:7fff::"));
  EXPECT_FALSE(in("2001:db8::/33", "2001:db8:8000::"));
  for (const char* text : {"10.0.0.1/8", "10.0.0.0/33", "10.0.0.0/", "10.0.0.0/08", "10.0.0.0/+8", "10.0.0.0/-1", "/8", "10.0.0.0", "::1/64", "::/129"}) {
    EXPECT_FALSE(parse_ip_network(text)) << text;
  }
}

TEST(NetworkRule, Parses) {
  using Kind = NetworkRule::Kind;
  struct Case {
    std::string text, same;
    Kind kind;
    int port;  // -1: none
  };
  const Case cases[] = {
      {"github.com", "github.com", Kind::name, -1},
      {"GitHub.com.:8443", "github.com:8443", Kind::name, 8443},
      {"*.Example.com", "*.example.com", Kind::subdomains, -1},
      {"*.b\xc3\xbc" "cher.example:443", "*.xn--bcher-kva.example:443", Kind::subdomains, 443},
      {"1.2.3.4:22", "1.2.3.4:22", Kind::network, 22},
      {"1.2.3.4", "1.2.3.4", Kind::network, -1},
      {"10.0.0.0/8:443", "10.0.0.0/8:443", Kind::network, 443},
      {"1.2.3.4/32", "1.2.3.4", Kind::network, -1},
      {"[2001:DB8::1]:443", "[2001:db8::1]:443", Kind::network, 443},
      {"[2001:db8::/32]:443", "[2001:db8::/32]:443", Kind::network, 443},
      {"[::]", "[::]", Kind::network, -1},
      {"host.sandy.internal:11434", "host.sandy.internal:11434", Kind::name, 11434},
      {"a.example:65535", "a.example:65535", Kind::name, 65535},
  };
  for (const auto& [text, same, kind, port] : cases) {
    const auto rule = parse_network_rule(text);
    ASSERT_TRUE(rule) << text << ": " << rule.error().text();
    EXPECT_EQ(rule->text(), same);
    EXPECT_EQ(rule->kind, kind) << text;
    EXPECT_EQ(rule->port ? *rule->port : -1, port) << text;
    EXPECT_EQ(parse_network_rule(same).value_or(NetworkRule{}), *rule);
  }
}

TEST(NetworkRule, Refuses) {
  const std::pair<std::string, std::string> cases[] = {
      {"", "empty"},
      {"*", "every host"},
      {"*:443", "every host"},
      {"*.", "empty name"},
      {"*.com", "public suffix"},
      {"*.co.uk", "public suffix"},
      {"*.internal:443", "public suffix"},
      {"*.*.example.com", "a *"},
      {"a.*.example.com", "a *"},
      {"*a.example.com", "a *"},
      {"https://example.com", "URL"},
      {"https://example.com/", "URL"},
      {"example.com/path", "no network"},
      {"user@example.com", "character"},
      {"example.com:", "port"},
      {"example.com:0", "port"},
      {"example.com:080", "port"},
      {"example.com:65536", "port"},
      {"example.com:-1", "port"},
      {"example.com:80:80", "colon"},
      {"example.com:*", "port"},
      {"2001:db8::1", "colon"},
      {"::1", "colon"},
      {"[::1", "["},
      {"[::1]443", "behind"},
      {"[::1]:", "behind"},
      {"[1.2.3.4]:80", "brackets"},
      {"[example.com]:80", "brackets"},
      {"[fe80::1%eth0]:80", "%"},
      {"[2001:db8::1/32]:80", "no network"},
      {"10.0.0.1/8:80", "no network"},
      {"127.1:80", "number"},
      {"0x7f.1:80", "number"},
      {"2130706433:80", "number"},
      {"010.0.0.1:80", "number"},
      {"evil example", "space"},
      {"a.example\r\nX: y", "space"},
      {std::string("a\0.example", 10), "space"},
      {std::string(2000, 'a'), "longer"},
  };
  for (const auto& [text, why] : cases) {
    const auto rule = parse_network_rule(text);
    ASSERT_FALSE(rule) << text << " is " << rule->text();
    EXPECT_THAT(rule.error().why, HasSubstr(why)) << text;
  }
}

}  // namespace
}  // namespace sandy::policy
