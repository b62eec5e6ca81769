#include "host/named_policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test_directory.h"

namespace sandy::host {
namespace {

using ::testing::HasSubstr;

class NamedPolicies : public ::testing::Test {
 protected:
  NamedPolicies() : environment_{{"XDG_CONFIG_HOME", directory.at("config")}} { ::chmod(directory.path().c_str(), 0755); }

  std::string place(const std::string& name) const { return "config/sandy/policies/" + name; }
  static std::string error_of(const std::string& name, const std::string& cwd = "") {
    const auto found = find_policy(name, cwd);
    return found ? "found " + found->path : found.error().text();
  }

  TestDirectory directory;

 private:
  WithEnvironment environment_;
};

TEST_F(NamedPolicies, AreFiles) {
  const std::string path = directory.make(place("mine.json"), "text", 0600);
  const auto found = find_policy("mine", "");
  ASSERT_TRUE(found) << found.error().text();
  EXPECT_EQ(found->path, path);
  EXPECT_EQ(found->text, "text");
  directory.make(place("all.json"), std::string(kMaxNamedPolicy, 'x'));
  EXPECT_TRUE(find_policy("all", ""));
}

TEST_F(NamedPolicies, TheErrorListsEveryPlace) {
  const std::string error = error_of("none");
  for (const auto& place : policy_directories()) EXPECT_THAT(error, HasSubstr(place));
  EXPECT_THAT(error, HasSubstr("./none"));
  EXPECT_EQ(policy_directories()[0], directory.at("config/sandy/policies"));
  EXPECT_EQ(policy_directories()[1], "/etc/sandy/policies");
}

TEST_F(NamedPolicies, WhatIsHereIsSpokenOfAndNotTaken) {
  directory.make("here/word", "{}");
  EXPECT_THAT(error_of("word", directory.at("here")), HasSubstr("current directory is not taken"));
  EXPECT_EQ(error_of("word", directory.path()).find("current directory"), std::string::npos);
}

TEST_F(NamedPolicies, NoNameIsAPath) {
  directory.make("config/sandy/secret.json", "secret");
  for (const char* name : {"../secret", "./mine", "", "MINE", "mine.json"}) EXPECT_THAT(error_of(name), HasSubstr("is no name of a policy"));
  EXPECT_THAT(error_of(std::string(kMaxPolicyName + 1, 'x')), HasSubstr("is no name of a policy"));
}

TEST_F(NamedPolicies, WhatOthersCanChangeIsAnError) {
  directory.make(place("mine.json"), "text");
  directory.make(place("open.json"), "text", 0646);
  directory.make(place("large.json"), std::string(kMaxNamedPolicy + 1, 'x'));
  directory.link(place("link.json"), "mine.json");
  directory.make_directory(place("folder.json"));
  ASSERT_EQ(::mkfifo(directory.at(place("fifo.json")).c_str(), 0600), 0);
  EXPECT_THAT(error_of("open"), HasSubstr("can be written to by others"));
  EXPECT_THAT(error_of("large"), HasSubstr("larger than 256 KiB"));
  EXPECT_THAT(error_of("link"), HasSubstr("is a symbolic link"));
  EXPECT_THAT(error_of("folder"), HasSubstr("is no regular file"));
  EXPECT_THAT(error_of("fifo"), HasSubstr("is no regular file"));
  EXPECT_TRUE(find_policy("mine", ""));
  // A list has them all, with what is wrong.
  const auto listed = list_policies();
  ASSERT_TRUE(listed) << listed.error().text();
  std::map<std::string, bool> usable;
  for (const auto& one : *listed) {
    if (one.path.starts_with(directory.path())) usable[one.name] = one.text.has_value();
  }
  EXPECT_EQ(usable, (std::map<std::string, bool>{{"fifo", false}, {"folder", false}, {"large", false}, {"link", false}, {"mine", true}, {"open", false}}));
}

// Somebody may have taken away the stricter one that was there.
TEST_F(NamedPolicies, ADirectoryOfOthersIsAnErrorForEveryName) {
  directory.make(place("mine.json"), "text");
  for (const char* open : {"config/sandy/policies", "config/sandy", "config"}) {
    ::chmod(directory.at(open).c_str(), 0757);
    EXPECT_THAT(error_of("mine"), HasSubstr("can be written to by others")) << open;
    EXPECT_THAT(error_of("another"), HasSubstr("can be written to by others")) << open;
    EXPECT_FALSE(list_policies());
    ::chmod(directory.at(open).c_str(), 0755);
  }
  EXPECT_TRUE(find_policy("mine", ""));
}

TEST_F(NamedPolicies, LinksToTheDirectoryAreFollowedWhereNobodyElseMadeThem) {
  directory.make("dotfiles/mine.json", "text");
  directory.make_directory("config/sandy");
  directory.link("config/sandy/policies", directory.at("dotfiles"));
  EXPECT_TRUE(find_policy("mine", "")) << error_of("mine");
  ::chmod(directory.at("dotfiles").c_str(), 0777);
  EXPECT_THAT(error_of("mine"), HasSubstr("can be written to by others"));
  ::chmod(directory.at("dotfiles").c_str(), 0755);
  // A second link, in a place of everybody's.
  directory.make_directory("shared", 0777);
  directory.link("shared/link", directory.at("dotfiles"));
  ::unlink(directory.at("config/sandy/policies").c_str());
  directory.link("config/sandy/policies", directory.at("shared/link"));
  EXPECT_THAT(error_of("mine"), HasSubstr("shared can be written to by others"));
}

TEST_F(NamedPolicies, WithoutAHomeThereAreTheOthers) {
  const WithEnvironment environment{{"XDG_CONFIG_HOME", "relative"}, {"HOME", directory.at("home")}};
  EXPECT_EQ(policy_directories()[0], directory.at("home/.config/sandy/policies"));
}

}  // namespace
}  // namespace sandy::host
