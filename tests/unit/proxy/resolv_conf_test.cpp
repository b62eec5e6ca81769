#include "proxy/resolv_conf.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sandy::proxy {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<std::string> servers(std::string_view text) {
  std::vector<std::string> out;
  for (const auto& address : parse_resolv_conf(text).servers) out.push_back(address.text());
  return out;
}

TEST(ResolvConf, HasServersInTheirOrder) {
  EXPECT_THAT(servers("nameserver 10.0.0.1\nnameserver\t2001:DB8::1 \r\nnameserver 10.0.0.2 # a comment"), ElementsAre("10.0.0.1", "2001:db8::1", "10.0.0.2"));
}

TEST(ResolvConf, PassesOverWhatIsNoServer) {
  EXPECT_THAT(servers("#nameserver 10.0.0.1\n;nameserver 10.0.0.2\nnameserver\nnameserver fe80::1%eth0\nnameserver 127.1\nnameserver a.example\nnameservers 10.0.0.3\noptions edns0\n\n"), IsEmpty());
  EXPECT_THAT(servers(""), IsEmpty());
}

TEST(ResolvConf, TakesTheLastSearchList) {
  EXPECT_THAT(parse_resolv_conf("domain one.test\nsearch Two.Test. three.test bad..name\n").search, ElementsAre("two.test", "three.test"));
  EXPECT_THAT(parse_resolv_conf("search two.test three.test\ndomain one.test").search, ElementsAre("one.test"));
  EXPECT_THAT(parse_resolv_conf("nameserver 10.0.0.1\nsearch .\n").search, IsEmpty());
}

}  // namespace
}  // namespace sandy::proxy
