#include "host/bubblewrap_capabilities.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sandy::host {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(BubblewrapVersion, NamesWhatIsKnown) {
  for (const char* text : {"bubblewrap 0.8.0\n", "bubblewrap 0.9.0", "bubblewrap 0.10.0", "bubblewrap 0.11.1", "bubblewrap 0.11.2"}) {
    const auto found = bubblewrap_version(text);
    EXPECT_EQ(found.state, CapabilityState::limited) << text;
    EXPECT_THAT(found.detail, HasSubstr("follows symbolic links")) << text;
    EXPECT_THAT(found.detail, HasSubstr("Sandy resolves every destination")) << text;
    EXPECT_THAT(found.fix, HasSubstr("0.12")) << text;
  }
  EXPECT_EQ(bubblewrap_version("bubblewrap 0.12.0\n").state, CapabilityState::ok);
  EXPECT_EQ(bubblewrap_version("bubblewrap 1.0.0\n").state, CapabilityState::ok);
}

TEST(BubblewrapVersion, NamesTheVersionsThatMustNotBeSetuid) {
  EXPECT_THAT(bubblewrap_version("bubblewrap 0.11.0").detail, HasSubstr("0.11.0 and 0.11.1 must also never be setuid"));
  EXPECT_THAT(bubblewrap_version("bubblewrap 0.11.1").detail, HasSubstr("0.11.0 and 0.11.1 must also never be setuid"));
  EXPECT_THAT(bubblewrap_version("bubblewrap 0.11.2").detail, Not(HasSubstr("setuid")));
}

TEST(BubblewrapVersion, StatesTheMinimum) {
  const auto found = bubblewrap_version("bubblewrap 0.3.1\n");
  EXPECT_EQ(found.state, CapabilityState::limited);
  EXPECT_THAT(found.detail, HasSubstr("older than 0.8.0"));
  EXPECT_THAT(found.fix, HasSubstr("0.8.0"));
}

TEST(BubblewrapVersion, TextThatIsNoneIsMadePrintable) {
  const auto found = bubblewrap_version("\x1b[31mowned\nsecond");
  EXPECT_EQ(found.state, CapabilityState::limited);
  EXPECT_THAT(found.detail, HasSubstr("\\x1b[31mowned"));
  EXPECT_THAT(found.detail, Not(HasSubstr("second")));
  EXPECT_FALSE(found.fix.empty());
  EXPECT_FALSE(bubblewrap_version("").fix.empty());
}

}  // namespace
}  // namespace sandy::host
