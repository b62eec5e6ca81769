#include "proxy/dns_responder.h"

#include <gtest/gtest.h>

namespace sandy::proxy::dns {
namespace {

using Bytes = std::vector<std::uint8_t>;

Bytes query(std::string_view name, std::uint16_t type, std::uint16_t question_class = kInternet) {
  Bytes out{0, 7, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0};
  while (!name.empty()) {
    const auto label = name.substr(0, name.find('.'));
    out.push_back(static_cast<std::uint8_t>(label.size()));
    out.insert(out.end(), label.begin(), label.end());
    name.remove_prefix(std::min(label.size() + 1, name.size()));
  }
  for (const int byte : {0, type >> 8, type & 0xFF, question_class >> 8, question_class & 0xFF}) out.push_back(static_cast<std::uint8_t>(byte));
  return out;
}

class DnsResponderTest : public ::testing::Test {
 protected:
  Reply ask(std::string_view name, std::uint16_t type, std::uint16_t question_class = kInternet) {
    return respond(query(name, type, question_class), allowlist, addresses, true);
  }
  static int rcode(const Reply& reply) { return reply.message.at(3) & 0xF; }
  static int answers(const Reply& reply) { return reply.message.at(7); }
  static Bytes last(const Reply& reply, std::size_t count) { return Bytes(reply.message.end() - static_cast<std::ptrdiff_t>(count), reply.message.end()); }

  Allowlist allowlist{{policy::parse_network_rule("example.com").value(), policy::parse_network_rule("*.example.org:22").value()},
                      {policy::parse_network_rule("bad.example.org").value()},
                      {}};
  SyntheticAddresses addresses;
};

TEST_F(DnsResponderTest, AllowedNamesHaveAddresses) {
  const auto first = ask("EXAMPLE.com", kA);
  EXPECT_EQ(rcode(first), 0);
  EXPECT_EQ(last(first, 4), (Bytes{198, 18, 1, 0}));
  EXPECT_EQ(first.name, "example.com");
  EXPECT_TRUE(first.decision.allowed);
  EXPECT_EQ(last(ask("a.example.org", kA), 4), (Bytes{198, 18, 1, 1}));
  EXPECT_EQ(last(ask("example.com", kA), 4), (Bytes{198, 18, 1, 0}));  // stable
  EXPECT_EQ(last(ask("example.com", kAaaa), 4), (Bytes{0, 0, 1, 0}));
}

TEST_F(DnsResponderTest, OthersDoNotExist) {
  for (const char* name : {"evil.example", "example.org", "bad.example.org", "x.example.com", "com", "localhost", "exam_ple.com", "1.2.3.4"}) {
    const auto reply = ask(name, kA);
    EXPECT_EQ(rcode(reply), 3) << name;
    EXPECT_EQ(answers(reply), 0);
    EXPECT_FALSE(reply.decision.allowed);
    EXPECT_FALSE(reply.decision.reason.empty());
  }
  EXPECT_EQ(addresses.size(), 0U);  // and cost nothing
}

TEST_F(DnsResponderTest, OtherTypesOfAllowedNamesAreEmpty) {
  for (const std::uint16_t type : {kHttps, kSvcb, kSoa, kAny, std::uint16_t{16}}) {
    EXPECT_EQ(rcode(ask("example.com", type)), 0);
    EXPECT_EQ(answers(ask("example.com", type)), 0);
    EXPECT_EQ(rcode(ask("evil.example", type)), 3);
  }
}

TEST_F(DnsResponderTest, ReverseNames) {
  ask("example.com", kA);
  const auto reply = ask("0.1.18.198.in-addr.arpa", kPtr);
  EXPECT_EQ(answers(reply), 1);
  EXPECT_EQ(last(reply, 13), (Bytes{7, 'e', 'x', 'a', 'm', 'p', 'l', 'e', 3, 'c', 'o', 'm', 0}));
  EXPECT_EQ(rcode(ask("1.1.18.198.in-addr.arpa", kPtr)), 3);
  EXPECT_EQ(rcode(ask("1.0.0.10.in-addr.arpa", kPtr)), 3);
  EXPECT_EQ(answers(ask("0.1.18.198.in-addr.arpa", kA)), 0);
}

TEST_F(DnsResponderTest, WhatIsNoNameOfTheInternet) {
  EXPECT_EQ(rcode(ask("", kA)), 5);
  EXPECT_EQ(rcode(ask("example.com", kA, 3)), 5);
  EXPECT_TRUE(respond(Bytes(5, 0), allowlist, addresses, true).message.empty());
}

TEST(SyntheticAddresses, BothWays) {
  SyntheticAddresses addresses;
  for (int i = 0; i < 70'000; ++i) {
    const std::string name = "n" + std::to_string(i) + ".example";
    const auto pair = addresses.addresses_of(name);
    ASSERT_EQ(pair.has_value(), static_cast<std::size_t>(i) < SyntheticAddresses::kMaxNames) << i;
    if (!pair) break;
    ASSERT_EQ(addresses.name_of(pair->v4), name);
    ASSERT_EQ(addresses.name_of(pair->v6), name);
  }
  EXPECT_EQ(addresses.addresses_of("n0.example")->v4.text(), "198.18.1.0");  // the full table still knows what it has
  EXPECT_EQ(addresses.addresses_of("n16383.example")->v4.text(), "198.18.64.255");
  for (const char* none : {"198.18.0.0", "198.18.0.255", "198.19.1.0", "198.20.1.0", "1.2.3.4", "fd53:616e:6479::", "fd53:616e:6479::ff", "fd53:616e:6479::1:ffff", "::1"}) {
    EXPECT_FALSE(addresses.name_of(*policy::parse_ip_address(none))) << none;
  }
}

}  // namespace
}  // namespace sandy::proxy::dns
