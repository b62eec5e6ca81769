#include "host/programs.h"

#include <gtest/gtest.h>

#include "test_directory.h"

namespace sandy::host {
namespace {

class Programs : public ::testing::Test {
 protected:
  Programs() : state_{{"XDG_STATE_HOME", directory.at("state")}, {"SANDY_BWRAP", std::nullopt}} {}

  // A program that says it is bubblewrap, and notes that it was asked.
  std::string fake(const std::string& name, const std::string& options = "--unshare-user --bind-fd --size") {
    return directory.make(name, "#!/bin/sh\necho asked >> " + directory.at("asked") + "\necho 'usage: bwrap " + options + "'\n", 0755);
  }
  std::size_t times_asked() const {
    const std::string text = content_of(directory.at("asked"));
    return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
  }

  TestDirectory directory;

 private:
  WithEnvironment state_;
};

// A command may have put it into a workspace that is in PATH.
TEST_F(Programs, OneOfOurOwnInPathIsNotTaken) {
  const std::string planted = fake("bin/bwrap");
  fake("here/bwrap");
  const std::string old = std::filesystem::current_path();
  std::filesystem::current_path(directory.at("here"));
  for (const std::string& path : {directory.at("bin"), directory.at("bin") + ":/usr/bin", std::string("."), std::string(":"), std::string("../bin")}) {
    const WithEnvironment environment{{"PATH", path}};
    const auto place = locate_bubblewrap();
    EXPECT_TRUE(!place || place->path.starts_with("/usr/") || place->path.starts_with("/bin/")) << place->path;
  }
  std::filesystem::current_path(old);
  EXPECT_EQ(times_asked(), 0U);
}

TEST_F(Programs, AFailureListsEveryPlace) {
  const std::string planted = fake("bin/bwrap");
  const WithEnvironment environment{{"PATH", directory.at("bin") + ":/nowhere:here"}};
  const auto place = locate_bubblewrap();
  if (place) {  // this machine has one
    EXPECT_TRUE(place->path.starts_with("/usr/") || place->path.starts_with("/bin/")) << place->path;
    return;
  }
  std::vector<std::string> places{"/usr/bin/bwrap", "/usr/local/bin/bwrap", "/bin/bwrap", "deepagents-sandbox[bwrap]"};
  if (::geteuid() != 0) places.insert(places.end(), {planted, "/nowhere/bwrap", "here/bwrap"});
  for (const std::string& text : places) EXPECT_NE(place.error().text().find(text), std::string::npos) << text;
}

TEST_F(Programs, TheVariableCounts) {
  const std::string own = fake("own/my-bwrap");
  fake("path/bwrap");
  const WithEnvironment environment{{"PATH", directory.at("path")}, {"SANDY_BWRAP", own}};
  const auto found = find_bubblewrap();
  ASSERT_TRUE(found) << found.error().text();
  EXPECT_EQ(found->path, own);
}

TEST_F(Programs, TheVariableIsNotReplacedByAGuess) {
  fake("path/bwrap");
  directory.make("no-program", "", 0644);
  for (const std::string& value : {std::string("relative/bwrap"), directory.at("none"), directory.at("no-program"), directory.path()}) {
    const WithEnvironment environment{{"PATH", directory.at("path")}, {"SANDY_BWRAP", value}};
    const auto found = find_bubblewrap();
    ASSERT_FALSE(found) << value;
    EXPECT_NE(found.error().what.find("SANDY_BWRAP"), std::string::npos);
  }
}

TEST_F(Programs, IsAskedOnceAndAgainWhenItChanges) {
  const std::string own = fake("own/bwrap");
  const WithEnvironment environment{{"SANDY_BWRAP", own}};
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(find_bubblewrap());
  EXPECT_EQ(times_asked(), 1U);
  std::filesystem::remove(own);
  fake("own/bwrap", "--unshare-user --new-option");
  const auto found = find_bubblewrap();
  ASSERT_TRUE(found);
  EXPECT_TRUE(found->options.contains("--new-option"));
  EXPECT_EQ(times_asked(), 2U);
}

TEST_F(Programs, WhatIsNoBubblewrapIsRefused) {
  const std::string fails = directory.make("fails", "#!/bin/sh\necho --unshare-user\nexit 1\n", 0755);
  const std::string other = directory.make("other", "#!/bin/sh\necho hello\n", 0755);
  for (const auto& program : {fails, other}) {
    const WithEnvironment environment{{"SANDY_BWRAP", program}};
    for (int i = 0; i < 2; ++i) EXPECT_FALSE(find_bubblewrap()) << program;  // and nothing of it is kept
  }
}

TEST_F(Programs, OwnProgramsAreBesideThisOne) {
  const auto missing = own_program("no-such-program");
  ASSERT_FALSE(missing);
  EXPECT_NE(missing.error().text().find("libexec/sandy"), std::string::npos);
  const std::string self = std::filesystem::read_symlink("/proc/self/exe");
  const auto found = own_program(std::filesystem::path(self).filename());
  ASSERT_TRUE(found);
  EXPECT_EQ(*found, self);
}

}  // namespace
}  // namespace sandy::host
