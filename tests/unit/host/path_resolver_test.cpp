#include "host/path_resolver.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/unique_fd.h"
#include "test_directory.h"

namespace sandy::host {
namespace {

using plan::FileType;

plan::HostPath resolved(const std::string& path) {
  auto out = resolve_path(path);
  if (!out) throw std::runtime_error(out.error().text());
  return *out;
}

TEST(ResolvePath, Types) {
  const TestDirectory directory;
  directory.make("file", "x");
  ASSERT_EQ(::mkfifo(directory.at("fifo").c_str(), 0644), 0);
  EXPECT_EQ(resolved("/"), (plan::HostPath{"/", FileType::directory, {}}));
  EXPECT_EQ(resolved(directory.path()), (plan::HostPath{directory.path(), FileType::directory, {}}));
  EXPECT_EQ(resolved(directory.at("file")), (plan::HostPath{directory.at("file"), FileType::file, {}}));
  EXPECT_EQ(resolved(directory.at("fifo")).type, FileType::other);
  EXPECT_EQ(resolved("/dev/null").type, FileType::other);
  const UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  directory.at("socket").copy(address.sun_path, sizeof address.sun_path);
  ASSERT_EQ(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  EXPECT_EQ(resolved(directory.at("socket")).type, FileType::socket);
}

TEST(ResolvePath, LinksAreRememberedInTheirOrder) {
  const TestDirectory directory;
  directory.make("real/dir/file", "x");
  directory.link("abs", directory.at("real"));
  directory.link("real/rel", "dir");
  directory.link("up", "real/dir/../../abs/rel/file");
  EXPECT_EQ(resolved(directory.at("abs/rel/file")),
            (plan::HostPath{directory.at("real/dir/file"), FileType::file, {{directory.at("abs"), directory.at("real")}, {directory.at("real/rel"), "dir"}}}));
  const auto up = resolved(directory.at("up"));
  EXPECT_EQ(up.canonical, directory.at("real/dir/file"));
  EXPECT_EQ(up.links.size(), 3U);
}

// ".." after a link is the parent of where the link leads.
TEST(ResolvePath, DotDotAfterALink) {
  const TestDirectory directory;
  directory.make("a/b/file", "x");
  directory.make("a/other", "x");
  directory.link("l", "a/b");
  directory.link("through", "l/../other");
  EXPECT_EQ(resolved(directory.at("through")).canonical, directory.at("a/other"));
  EXPECT_EQ(resolved(directory.at("l/../other")).canonical, directory.at("a/other"));
  EXPECT_EQ(resolved(directory.at("l/../../l/..")), (plan::HostPath{directory.at("a"), FileType::directory,
            {{directory.at("l"), "a/b"}, {directory.at("l"), "a/b"}}, {directory.at("a/b"), directory.at("a"), directory.at("a/b")}}));
  directory.link("above_root", "/../../../../../../../../.." + directory.at("a"));
  EXPECT_EQ(resolved(directory.at("above_root")).canonical, directory.at("a"));
}

TEST(ResolvePath, MissingNames) {
  const TestDirectory directory;
  directory.make("file", "x");
  directory.link("dangling", "none/below");
  EXPECT_EQ(resolved(directory.at("none/a/b")), (plan::HostPath{directory.at("none/a/b"), FileType::missing, {}}));
  EXPECT_EQ(resolved(directory.at("file/below")).type, FileType::missing);
  EXPECT_EQ(resolved(directory.at("dangling")).canonical, directory.at("none/below"));
  EXPECT_EQ(resolved(directory.at("dangling")).type, FileType::missing);
}

// The kernel finds nothing there. Such a path must not be taken for what its text, shortened, would name.
TEST(ResolvePath, DotDotBehindWhatIsNoDirectory) {
  const TestDirectory directory;
  directory.make("file", "x");
  directory.make("a/file", "x");
  directory.link("out_of_missing", "none/../file");
  directory.link("dangling", "none");
  directory.link("to_file", "file");
  for (const auto& [name, behind, why] : {std::tuple{"none/../file", "none", "No such file"}, {"none/a/../../file", "none/a", "No such file"},
                                          {"out_of_missing", "none", "No such file"}, {"dangling/../file", "none", "No such file"},
                                          {"file/../file", "file", "Not a directory"}, {"to_file/..", "file", "Not a directory"}}) {
    const auto out = resolve_path(directory.at(name));
    ASSERT_FALSE(out) << name << " is " << out->canonical;
    EXPECT_EQ(out.error().what, directory.at(name));
    EXPECT_EQ(out.error().why.find("\"..\" stands behind \"" + directory.at(behind) + "\": " + why), 0U) << out.error().why;
    EXPECT_NE(out.error().fix, "");
  }
}

TEST(ResolvePath, Loops) {
  const TestDirectory directory;
  directory.link("self", "self");
  directory.link("a", "b");
  directory.link("b", "a");
  directory.make("deep", "x");
  for (int i = 0; i < 41; ++i) directory.link("c" + std::to_string(i), i == 0 ? "deep" : "c" + std::to_string(i - 1));
  for (const char* name : {"self", "a", "b/c", "c40"}) {
    const auto out = resolve_path(directory.at(name));
    ASSERT_FALSE(out) << name;
    EXPECT_NE(out.error().text().find("symbolic links"), std::string::npos) << out.error().text();
  }
  EXPECT_EQ(resolved(directory.at("c39")).canonical, directory.at("deep"));
}

TEST(ResolvePath, NamesOfAnyBytes) {
  const TestDirectory directory;
  const std::string name = "two\nlines \"q\" \xff";
  directory.make(name, "x");
  EXPECT_EQ(resolved(directory.at(name)), (plan::HostPath{directory.at(name), FileType::file, {}}));
}

TEST(ResolvePath, WhatCannotBeLookedIntoIsMissing) {
  const TestDirectory directory;
  directory.make("shut/inside/file", "x");
  ASSERT_EQ(::chmod(directory.at("shut").c_str(), 0), 0);
  const std::string result = unprivileged([&]() -> std::string {
    const auto out = resolve_path(directory.at("shut/inside/file"));
    if (!out) return out.error().text();
    if (out->type != FileType::missing) return "not missing";
    if (out->canonical != directory.at("shut/inside/file")) return out->canonical;
    if (resolve_path(directory.at("shut"))->type != FileType::directory) return "the directory itself can't be seen";
    const auto behind = resolve_path(directory.at("shut/../other"));
    return behind ? "\"..\" leads out of what can't be entered" : behind.error().why.find("Permission denied") == std::string::npos ? behind.error().why : "";
  });
  EXPECT_EQ(result, "");
  ::chmod(directory.at("shut").c_str(), 0755);
}

TEST(ResolvePath, NamesThatAreTooLong) {
  const TestDirectory directory;
  EXPECT_FALSE(resolve_path(directory.at(std::string(300, 'x'))));
}

TEST(OpenCanonical, OpensWithoutFollowing) {
  const TestDirectory directory;
  directory.make("dir/file", "x");
  directory.link("link", "dir");
  const auto file = open_canonical(directory.at("dir/file"));
  ASSERT_TRUE(file) << file.error().text();
  EXPECT_NE(::fcntl(file->get(), F_GETFD) & FD_CLOEXEC, 0);
  EXPECT_NE(::fcntl(file->get(), F_GETFL) & O_PATH, 0);
  // Somebody put a link there since it was resolved: as the last name, and on the way.
  for (const char* name : {"link", "link/file"}) {
    const auto out = open_canonical(directory.at(name));
    ASSERT_FALSE(out) << name;
    EXPECT_NE(out.error().why.find("symbolic link"), std::string::npos);
  }
  EXPECT_FALSE(open_canonical(directory.at("none")));
}

}  // namespace
}  // namespace sandy::host
