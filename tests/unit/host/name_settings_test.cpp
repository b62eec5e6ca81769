#include "host/name_settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>

#include "test_directory.h"

namespace sandy::host {
namespace {

using testing::ElementsAre;

std::vector<std::string> texts(const std::optional<std::vector<UniqueFd>>& files) {
  std::vector<std::string> out;
  if (!files) return out;
  for (const auto& file : *files) {
    std::array<char, 256> text;
    const ssize_t n = ::read(file.get(), text.data(), text.size());
    out.emplace_back(text.data(), n > 0 ? static_cast<std::size_t>(n) : 0);
  }
  return out;
}

class NameSettingsTest : public testing::Test {
 protected:
  NameSettings settings() { return NameSettings(directory_.at("resolv.conf"), directory_.at("hosts")); }
  void write(const std::string& name, const std::string& text) { directory_.make(name, text); }
  std::string path(const std::string& name) { return directory_.at(name); }
  TestDirectory directory_;
};

TEST_F(NameSettingsTest, HasNothingUntilOneChanges) {
  write("resolv.conf", "nameserver 10.0.0.1\n");
  write("hosts", "");
  auto names = settings();
  EXPECT_FALSE(names.changed());
  write("hosts", "10.0.0.2 a\n");
  EXPECT_THAT(texts(names.changed()), ElementsAre("nameserver 10.0.0.1\n", "10.0.0.2 a\n"));
  EXPECT_FALSE(names.changed());
}

TEST_F(NameSettingsTest, FollowsLinksAndReplacedFiles) {
  write("one", "nameserver 10.0.0.1\n");
  write("two", "nameserver 10.0.0.2\n");
  ASSERT_EQ(::symlink("one", path("resolv.conf").c_str()), 0);
  auto names = settings();
  ASSERT_EQ(::unlink(path("resolv.conf").c_str()), 0);
  ASSERT_EQ(::symlink("two", path("resolv.conf").c_str()), 0);
  EXPECT_THAT(texts(names.changed()), ElementsAre("nameserver 10.0.0.2\n", ""));
  write("new", "nameserver 10.0.0.3\n");
  ASSERT_EQ(::rename(path("new").c_str(), path("two").c_str()), 0);
  EXPECT_THAT(texts(names.changed()), ElementsAre("nameserver 10.0.0.3\n", ""));
  ASSERT_EQ(::unlink(path("two").c_str()), 0);
  EXPECT_THAT(texts(names.changed()), ElementsAre("", ""));
}

TEST_F(NameSettingsTest, WaitsForNoFifo) {
  auto names = settings();
  ASSERT_EQ(::mkfifo(path("hosts").c_str(), 0600), 0);
  EXPECT_FALSE(names.changed());  // it is as if there were none
  write("resolv.conf", "nameserver 10.0.0.1\n");
  EXPECT_THAT(texts(names.changed()), ElementsAre("nameserver 10.0.0.1\n", ""));
}

}  // namespace
}  // namespace sandy::host
