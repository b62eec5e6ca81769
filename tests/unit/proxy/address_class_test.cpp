#include "proxy/address_class.h"

#include <gtest/gtest.h>

namespace sandy::proxy {
namespace {

TEST(AddressClass, Table) {
  using enum AddressClass;
  const std::pair<const char*, AddressClass> cases[] = {
      {"1.1.1.1", public_}, {"93.184.216.34", public_}, {"100.63.255.255", public_}, {"100.128.0.0", public_}, {"172.15.255.255", public_},
      {"172.32.0.0", public_}, {"192.0.1.0", public_}, {"198.17.255.255", public_}, {"198.20.0.0", public_}, {"223.255.255.255", public_},
      {"0.0.0.0", unspecified}, {"0.1.2.3", unspecified},
      {"127.0.0.1", loopback}, {"127.255.255.255", loopback},
      {"10.0.0.0", private_}, {"10.255.255.255", private_}, {"172.16.0.0", private_}, {"172.31.255.255", private_}, {"192.168.0.1", private_},
      {"100.64.0.0", private_}, {"100.127.255.255", private_},
      {"169.254.0.1", link_local},
      {"169.254.169.254", metadata}, {"168.63.129.16", metadata}, {"100.100.100.200", metadata}, {"192.0.0.192", metadata},
      {"192.0.2.1", documentation}, {"198.51.100.1", documentation}, {"203.0.113.1", documentation},
      {"198.18.0.1", benchmark}, {"198.19.255.255", benchmark},
      {"192.88.99.1", tunnel}, {"224.0.0.1", multicast}, {"239.255.255.255", multicast}, {"240.0.0.1", reserved}, {"255.255.255.255", broadcast},
      {"2606:4700::1111", public_}, {"2a00:1450:4001::200e", public_}, {"2400::", public_}, {"3fff:1000::", public_},
      {"::", unspecified}, {"::1", loopback}, {"fe80::1", link_local}, {"febf::1", link_local}, {"fec0::1", private_}, {"fc00::1", private_},
      {"fdff::1", private_}, {"fd00:ec2::254", metadata}, {"fd20:ce::254", metadata}, {"ff02::1", multicast},
      {"2001:db8::1", documentation}, {"3fff::1", documentation}, {"2001::1", tunnel}, {"2001:20::1", reserved}, {"2002:7f00:1::", tunnel},
      {"100::1", reserved}, {"4000::1", reserved}, {"::2", reserved}, {"5f00::1", reserved}, {"64:ff9b:1::1", private_},
      // What stands for an IPv4 address is of its class.
      {"::ffff:1.1.1.1", public_}, {"::ffff:127.0.0.1", loopback}, {"::ffff:10.0.0.1", private_}, {"::ffff:169.254.169.254", metadata},
      {"::ffff:0.0.0.0", unspecified}, {"64:ff9b::1.1.1.1", public_}, {"64:ff9b::127.0.0.1", loopback}, {"64:ff9b::a00:1", private_},
      {"64:ff9b::a9fe:a9fe", metadata},
      // The old IPv4-compatible form never is.
      {"::127.0.0.1", reserved}, {"::1.1.1.1", reserved},
      {"2606:4700::5efe:7f00:1", tunnel}, {"2606:4700::200:5efe:a00:1", tunnel},
  };
  for (const auto& [text, address_class] : cases) {
    const auto address = policy::parse_ip_address(text);
    ASSERT_TRUE(address) << text;
    EXPECT_EQ(classify(*address), address_class) << text << " is " << words(classify(*address));
  }
}

}  // namespace
}  // namespace sandy::proxy
