#include "proxy/allowlist.h"

#include <gtest/gtest.h>

namespace sandy::proxy {
namespace {

std::vector<policy::NetworkRule> rules(std::initializer_list<const char*> texts) {
  std::vector<policy::NetworkRule> out;
  for (const char* text : texts) out.push_back(policy::parse_network_rule(text).value());
  return out;
}

policy::IpAddress ip(const char* text) { return policy::parse_ip_address(text).value(); }

const Allowlist& list() {
  static const Allowlist allowlist(
      rules({"example.com", "*.example.com", "git.example.org:22", "*.many.example:8000", "1.2.3.4:443", "5.6.0.0/16:25", "10.9.9.9:80", "[2606:4700::/32]:443"}),
      rules({"bad.example.com", "port.example.com:443", "*.worse.example.com", "5.6.7.0/24", "93.184.0.0/16:8080"}),
      rules({"db.corp.example:5432", "10.1.2.3:5432", "host.sandy.internal:11434"}));
  return allowlist;
}

TEST(Allowlist, Names) {
  struct Case {
    const char* name;
    std::uint16_t port;
    bool allowed;
    const char* reason;
  };
  const Case cases[] = {
      {"example.com", 443, true, "example.com"},
      {"example.com", 80, true, "example.com"},
      {"example.com", 8443, false, "this port is not in the allowlist"},
      {"a.example.com", 443, true, "*.example.com"},
      {"a.b.example.com", 443, true, "*.example.com"},
      {"notexample.com", 443, false, "not in the allowlist"},
      {"example.com.evil.org", 443, false, "not in the allowlist"},
      {"git.example.org", 22, true, "git.example.org:22"},
      {"git.example.org", 443, false, "this port is not in the allowlist"},
      {"example.org", 22, false, "not in the allowlist"},
      {"x.many.example", 8000, true, "*.many.example:8000"},
      {"many.example", 8000, false, "not in the allowlist"},
      // deny beats allow, whichever is narrower.
      {"bad.example.com", 443, false, "denied by the rule bad.example.com"},
      {"bad.example.com", 9999, false, "denied by the rule bad.example.com"},
      {"x.bad.example.com", 443, true, "*.example.com"},
      {"port.example.com", 443, false, "denied by the rule port.example.com:443"},
      {"port.example.com", 80, true, "*.example.com"},
      {"a.worse.example.com", 80, false, "denied by the rule *.worse.example.com"},
      {"db.corp.example", 5432, true, "db.corp.example:5432"},
      {"db.corp.example", 443, false, "not in the allowlist"},
      {"host.sandy.internal", 11434, true, "host.sandy.internal:11434"},
      // An address is no name.
      {"1.2.3.4", 443, false, "not in the allowlist"},
      {"", 443, false, "not in the allowlist"},
  };
  for (const auto& [name, port, allowed, reason] : cases) {
    const auto decision = list().decide(std::string_view(name), port);
    EXPECT_EQ(decision.allowed, allowed) << name << ':' << port;
    EXPECT_EQ(decision.reason, reason) << name << ':' << port;
  }
}

TEST(Allowlist, Addresses) {
  struct Case {
    const char* address;
    std::uint16_t port;
    bool allowed;
  };
  const Case cases[] = {
      {"1.2.3.4", 443, true},  {"1.2.3.4", 80, false},    {"1.2.3.5", 443, false}, {"5.6.0.1", 25, true},
      {"5.6.7.8", 25, false},  {"5.6.7.8", 443, false},   {"8.8.8.8", 443, false}, {"10.1.2.3", 5432, true},
      {"10.1.2.3", 80, false}, {"127.0.0.1", 443, false}, {"2606:4700::1", 443, true},
      {"10.9.9.9", 80, false},           // in allow, but private: only allow_private can name it
      {"::ffff:1.2.3.4", 443, false},    // another spelling of an allowed one
      {"::ffff:10.1.2.3", 5432, false},
  };
  for (const auto& [address, port, allowed] : cases) EXPECT_EQ(list().decide(ip(address), port).allowed, allowed) << address << ':' << port;
  EXPECT_EQ(list().decide(ip("10.9.9.9"), 80).reason, "is a private address, which only allow_private can name");
}

TEST(Allowlist, WhatANameLeadsTo) {
  struct Case {
    const char* name;
    const char* address;
    std::uint16_t port;
    bool allowed;
  };
  const Case cases[] = {
      {"example.com", "93.184.216.34", 443, true},
      {"example.com", "93.184.216.34", 8080, false},  // denied by an address rule
      {"example.com", "5.6.7.8", 443, false},
      {"example.com", "127.0.0.1", 443, false},
      {"example.com", "10.0.0.1", 443, false},
      {"example.com", "169.254.169.254", 80, false},
      {"example.com", "::ffff:127.0.0.1", 443, false},
      {"example.com", "64:ff9b::7f00:1", 443, false},
      {"example.com", "64:ff9b::5db8:d822", 443, true},
      {"db.corp.example", "10.7.7.7", 5432, true},
      {"db.corp.example", "10.7.7.7", 80, false},
      {"other.example.com", "10.1.2.3", 5432, true},  // the target itself is named
      {"other.example.com", "10.1.2.3", 443, false},
  };
  for (const auto& [name, address, port, allowed] : cases) {
    EXPECT_EQ(list().decide_dial(name, ip(address), port).allowed, allowed) << name << ' ' << address << ':' << port;
  }
  EXPECT_EQ(list().decide_dial("example.com", ip("10.0.0.1"), 443).reason, "leads to 10.0.0.1, a private address");
}

TEST(Allowlist, NamesThatExist) {
  for (const char* name : {"example.com", "a.example.com", "git.example.org", "x.many.example", "port.example.com", "db.corp.example"}) {
    EXPECT_TRUE(list().decide_name(name).allowed) << name;
  }
  for (const char* name : {"", "com", "example.org", "bad.example.com", "a.worse.example.com", "many.example", "1.2.3.4"}) {
    EXPECT_FALSE(list().decide_name(name).allowed) << name;
  }
}

TEST(Allowlist, AnEmptyOneAllowsNothing) {
  const Allowlist none;
  EXPECT_FALSE(none.decide(std::string_view("example.com"), 443).allowed);
  EXPECT_FALSE(none.decide(ip("1.2.3.4"), 443).allowed);
  EXPECT_FALSE(none.decide_name("example.com").allowed);
}

}  // namespace
}  // namespace sandy::proxy
