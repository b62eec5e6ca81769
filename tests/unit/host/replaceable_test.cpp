#include "host/replaceable.h"

#include <grp.h>
#include <pwd.h>
#include <sys/xattr.h>

#include <cstdint>

#include "test_directory.h"

namespace sandy::host {
namespace {

class Replaceable : public ::testing::Test {
 protected:
  Replaceable() {
    ::chmod(directory.path().c_str(), 0755);
    program = directory.make("above/bin/program", "", 0755);
  }
  std::string of(const std::string& path) const { return replaceable_by_others(path, {::geteuid()}); }

  TestDirectory directory{"/tmp"};  // sticky, so what is in it is not replaceable
  std::string program;
};

TEST_F(Replaceable, NotWhereNobodyElseCanWrite) {
  EXPECT_EQ(of(program), "");
  EXPECT_EQ(of("/usr/bin/env"), "");
}

TEST_F(Replaceable, ByTheFileAndEachDirectoryAboveIt) {
  for (const char* name : {"above", "above/bin", "above/bin/program"}) {
    for (const mode_t mode : {0757, 0777}) {
      ::chmod(directory.at(name).c_str(), mode);
      EXPECT_EQ(of(program), directory.at(name) + " can be written to by others");
      ::chmod(directory.at(name).c_str(), 0755);
    }
  }
  ::chmod(directory.at("above").c_str(), 01777);
  EXPECT_EQ(of(program), "");
  ::chmod(directory.at("above/bin/program").c_str(), 01777);  // means nothing for a file
  EXPECT_NE(of(program), "");
}

TEST_F(Replaceable, ByWhereALinkIsAndByWhereItLeads) {
  directory.make_directory("links");
  const std::string link = directory.link("links/program", program);
  EXPECT_EQ(of(link), "");
  ::chmod(directory.at("links").c_str(), 0777);
  EXPECT_EQ(of(link), directory.at("links") + " can be written to by others");
  ::chmod(directory.at("links").c_str(), 0755);
  ::chmod(directory.at("above").c_str(), 0777);
  EXPECT_EQ(of(link), directory.at("above") + " can be written to by others");
}

TEST_F(Replaceable, ByLinksBetweenAndWhatTheyLeaveAgain) {
  for (const char* name : {"links", "between", "left"}) directory.make_directory(name);
  directory.link("between/program", program);
  const std::string link = directory.link("links/program", "../left/../between/program");
  EXPECT_EQ(of(link), "");
  for (const char* name : {"links", "between", "left", "above/bin"}) {
    ::chmod(directory.at(name).c_str(), 0777);
    EXPECT_EQ(of(link), directory.at(name) + " can be written to by others");
    ::chmod(directory.at(name).c_str(), 0755);
  }
}

TEST_F(Replaceable, ByWhoseALinkIs) {
  const uid_t owner = ::geteuid() == 0 ? 12345 : ::geteuid();
  const std::string link = directory.link("link", "/usr/bin/env");
  ASSERT_EQ(::lchown(link.c_str(), owner, static_cast<gid_t>(-1)), 0);
  EXPECT_EQ(replaceable_by_others(link, {}), link + " belongs to user " + std::to_string(owner));
  EXPECT_EQ(replaceable_by_others(link, {::geteuid(), owner}), "");
}

// A group of a user's own, with their name, has nobody else.
TEST_F(Replaceable, ByAGroupOfOthers) {
  const passwd* user = ::getpwuid(::geteuid());
  const ::group* own = user == nullptr ? nullptr : ::getgrgid(::getegid());
  ASSERT_NE(own, nullptr);
  ::chmod(directory.at("above").c_str(), 0775);
  EXPECT_EQ(of(program).empty(), std::string(own->gr_name) == user->pw_name) << of(program);
  if (::geteuid() != 0) return;  // others can't give a file to another group
  ASSERT_EQ(::chown(directory.at("above").c_str(), 0, 12345), 0);
  EXPECT_EQ(of(program), directory.at("above") + " can be written to by others");
}

// With an access control list the mode's group bits are its mask, and the group may be the user's own all the same.
TEST_F(Replaceable, ByAnAccessControlList) {
  struct Entry {
    std::uint16_t tag, permissions;
    std::uint32_t id;
  };
  constexpr std::uint32_t kNone = 0xFFFFFFFF;
  // acl(5); the kernel's include/uapi/linux/posix_acl_xattr.h: the owner, user 1, the group, the mask, others.
  const struct {
    std::uint32_t version = 2;
    Entry entries[5] = {{0x01, 6, kNone}, {0x02, 6, 1}, {0x04, 4, kNone}, {0x10, 6, kNone}, {0x20, 4, kNone}};
  } list;
  static_assert(sizeof list == 44);
  if (::setxattr(program.c_str(), "system.posix_acl_access", &list, sizeof list, 0) != 0) GTEST_SKIP() << "this file system has no access control lists";
  EXPECT_EQ(of(program), program + " can be written to by others");
}

TEST_F(Replaceable, ByItsOwner) {
  const uid_t owner = ::geteuid() == 0 ? 12345 : ::geteuid();
  ASSERT_EQ(::chown(directory.at("above/bin").c_str(), owner, static_cast<gid_t>(-1)), 0);
  ASSERT_EQ(::chown(program.c_str(), owner, static_cast<gid_t>(-1)), 0);
  EXPECT_EQ(replaceable_by_others(program, {}), program + " belongs to user " + std::to_string(owner));
  EXPECT_EQ(replaceable_by_others(program, {::geteuid(), owner}), "");
}

TEST_F(Replaceable, WhatIsNotThereOrRelative) {
  EXPECT_NE(of("program"), "");
  EXPECT_NE(of("./program"), "");
  EXPECT_NE(of(""), "");
  EXPECT_NE(of(directory.at("none")), "");
}

}  // namespace
}  // namespace sandy::host
