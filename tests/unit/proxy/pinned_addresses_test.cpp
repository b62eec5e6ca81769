#include "proxy/pinned_addresses.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sandy::proxy {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

policy::IpAddress at(const char* text) { return *policy::parse_ip_address(text); }

TEST(PinnedAddresses, AnAddressHasTheNamesThatWereToldItTheLastFirst) {
  PinnedAddresses pinned;
  EXPECT_THAT(pinned.names_of(at("192.0.2.1")), IsEmpty());
  EXPECT_TRUE(pinned.pin(at("192.0.2.1"), "a"));
  EXPECT_TRUE(pinned.pin(at("192.0.2.1"), "b"));
  EXPECT_TRUE(pinned.pin(at("2001:db8::1"), "a"));
  EXPECT_THAT(pinned.names_of(at("192.0.2.1")), ElementsAre("b", "a"));
  EXPECT_TRUE(pinned.pin(at("192.0.2.1"), "a"));
  EXPECT_THAT(pinned.names_of(at("192.0.2.1")), ElementsAre("a", "b"));
  EXPECT_THAT(pinned.names_of(at("2001:db8::1")), ElementsAre("a"));
}

TEST(PinnedAddresses, TablesHaveAnEnd) {
  PinnedAddresses pinned;
  for (std::size_t i = 0; i <= PinnedAddresses::kMaxNames; ++i) pinned.pin(at("192.0.2.1"), "n" + std::to_string(i));
  EXPECT_EQ(pinned.names_of(at("192.0.2.1")).size(), PinnedAddresses::kMaxNames);
  policy::IpAddress address = at("10.0.0.0");
  for (std::size_t i = 1; i < PinnedAddresses::kMaxAddresses; ++i) {
    address.bytes[2] = static_cast<std::uint8_t>(i >> 8);
    address.bytes[3] = static_cast<std::uint8_t>(i);
    ASSERT_TRUE(pinned.pin(address, "x"));
  }
  EXPECT_FALSE(pinned.pin(at("10.1.0.0"), "x"));
  EXPECT_TRUE(pinned.pin(address, "y")) << "what is in it stays";
}

}  // namespace
}  // namespace sandy::proxy
