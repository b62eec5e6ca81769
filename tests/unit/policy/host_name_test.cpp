#include "policy/host_name.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sandy::policy {
namespace {

using testing::HasSubstr;

TEST(HostName, Canonical) {
  const std::pair<std::string, std::string> cases[] = {
      {"github.com", "github.com"},
      {"GitHub.COM", "github.com"},
      {"github.com.", "github.com"},
      {"a", "a"},
      {"localhost", "localhost"},
      {"my_bucket.s3.amazonaws.com", "my_bucket.s3.amazonaws.com"},
      {"xn--bcher-kva.example", "xn--bcher-kva.example"},
      {"b\xc3\xbc" "cher.example", "xn--bcher-kva.example"},
      {"B\xc3\x9c" "CHER.example.", "xn--bcher-kva.example"},
      // The same letter, composed or not, and a full-width one.
      {"bu\xcc\x88" "cher.example", "xn--bcher-kva.example"},
      {"\xef\xbd\x81.example", "a.example"},
      // IDNA 2008 keeps what the older one folded: sz is not ss.
      {"stra\xc3\x9f" "e.example", "xn--strae-oqa.example"},
      {"\xe4\xbe\x8b\xe5\xad\x90\xe3\x80\x82" "com", "xn--fsqu00a.com"},
      {"1.example", "1.example"},
      {"1a", "1a"},
      {"0xg", "0xg"},
      {std::string(63, 'a') + ".b", std::string(63, 'a') + ".b"},
  };
  for (const auto& [name, canonical] : cases) {
    const auto got = canonical_host_name(name);
    ASSERT_TRUE(got) << name << ": " << got.error().text();
    EXPECT_EQ(*got, canonical);
    EXPECT_EQ(canonical_host_name(*got).value_or("none"), canonical);
  }
}

TEST(HostName, Refused) {
  std::string long_name;
  while (long_name.size() < 252) long_name += "aa.";
  const std::pair<std::string, std::string> cases[] = {
      {"", "empty"},
      {".", "empty"},
      {"..", "empty label"},
      {"a..b", "empty label"},
      {".a", "empty label"},
      {"a.b..", "empty label"},
      {"-a.b", "starts or ends with -"},
      {"a-.b", "starts or ends with -"},
      {"a b", "character"},
      {"a/b", "character"},
      {"a:b", "character"},
      {"a@b", "character"},
      {"a\r\n", "character"},
      {"[::1]", "character"},
      {"*.a", "character"},
      {std::string("a\0b.example", 11), "NUL"},
      {std::string(64, 'a') + ".b", "63"},
      {long_name + "aa", "longer"},
      {std::string(5000, 'a'), "longer"},
      {"\xff.example", "IDNA"},
      {"\xe2\x80\xae.example", "IDNA"},  // a right-to-left override
      // What resolvers take for addresses.
      {"127.0.0.1", "number"},
      {"127.1", "number"},
      {"2130706433", "number"},
      {"0x7f000001", "number"},
      {"0177.0.0.01", "number"},
      {"a.0x7f", "number"},
      {"1.2.3.4.", "number"},
      {"\xef\xbc\x91.\xef\xbc\x92", "number"},  // full-width digits
  };
  for (const auto& [name, why] : cases) {
    const auto got = canonical_host_name(name);
    ASSERT_FALSE(got) << name << " is " << *got;
    EXPECT_THAT(got.error().why, HasSubstr(why)) << name;
  }
}

TEST(HostName, PublicSuffixes) {
  for (const char* name : {"com", "co.uk", "internal", "no-such-top-level-domain"}) EXPECT_TRUE(is_public_suffix(name)) << name;
  for (const char* name : {"example.com", "bbc.co.uk", "github.io", "githubusercontent.com", "www.ck"}) EXPECT_FALSE(is_public_suffix(name)) << name;
}

TEST(HostName, Subdomains) {
  EXPECT_TRUE(is_subdomain("a.example.com", "example.com"));
  EXPECT_TRUE(is_subdomain("a.b.example.com", "example.com"));
  EXPECT_FALSE(is_subdomain("example.com", "example.com"));
  EXPECT_FALSE(is_subdomain("notexample.com", "example.com"));
  EXPECT_FALSE(is_subdomain(".example.com", "example.com.evil"));
  EXPECT_FALSE(is_subdomain("com", "example.com"));
}

}  // namespace
}  // namespace sandy::policy
