#include "policy/base64.h"

#include <gtest/gtest.h>

#include <random>
#include <utility>
#include <vector>

namespace sandy::policy {
namespace {

// RFC 4648 section 10, and bytes that are no text.
const std::vector<std::pair<std::string, std::string>>& pairs() {
  static const std::vector<std::pair<std::string, std::string>> rows{{"", ""},
                                                                     {"f", "Zg=="},
                                                                     {"fo", "Zm8="},
                                                                     {"foo", "Zm9v"},
                                                                     {"foob", "Zm9vYg=="},
                                                                     {"fooba", "Zm9vYmE="},
                                                                     {"foobar", "Zm9vYmFy"},
                                                                     {"\xff\xfb\xbf", "//u/"}};
  return rows;
}

TEST(Base64, BothWays) {
  for (const auto& [bytes, text] : pairs()) {
    EXPECT_EQ(base64_encode(bytes), text);
    EXPECT_EQ(base64_decode(text), bytes);
  }
}

TEST(Base64, RoundTripsRandomBytes) {
  std::mt19937 random(7);
  for (int i = 0; i < 500; ++i) {
    std::string bytes(random() % 40, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random());
    EXPECT_EQ(base64_decode(base64_encode(bytes)), bytes);
  }
}

TEST(Base64, RefusesEveryOtherSpelling) {
  for (const char* text : {"Zg", "Zg=", "Zg===", "=", "====", "Z===", "Zh==", "Zm9=", "Zm 9v",
                           "Zm9v\n", "Zm9-", "Zm9_", "Zg==Zg==", "\xff\xff\xff\xff"}) {
    EXPECT_FALSE(base64_decode(text)) << text;
  }
}

}  // namespace
}  // namespace sandy::policy
