#include "agent/command_image.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <limits>

namespace sandy::agent {
namespace {

using Strings = std::vector<std::string>;

wire::Configuration configuration() {
  wire::Configuration out;
  out.workspace = out.cwd = "/workspace";
  out.environment = {"PATH=/usr/bin:/bin", "HOME=/home/u"};
  out.open_files = 64;
  out.file_size = 4096;
  return out;
}

// `argc` commands words, then the directory, then variables.
wire::Frame frame_of(const Strings& args, wire::Json fields = wire::Json::object()) {
  wire::Frame frame;
  frame.header = std::move(fields);
  frame.header["args"] = wire::Json::array();
  for (const auto& argument : args) {
    frame.header["args"].push_back(argument.size());
    frame.payload += argument;
  }
  return frame;
}

TEST(PathCandidates, AsExecvp) {
  EXPECT_EQ(path_candidates("ls", {"PATH=/a:/b"}), (Strings{"/a/ls", "/b/ls"}));
  EXPECT_EQ(path_candidates("./ls", {"PATH=/a"}), (Strings{"./ls"}));
  EXPECT_EQ(path_candidates("/x/ls", {"PATH=/a"}), (Strings{"/x/ls"}));
  EXPECT_EQ(path_candidates("ls", {"PATH=:/a::/b:"}), (Strings{"/a/ls", "/b/ls"})) << "empty entries are not the current directory";
  EXPECT_EQ(path_candidates("ls", {"PATH="}), Strings{});
  EXPECT_EQ(path_candidates("ls", {"XPATH=/a"}).back(), "/bin/ls") << "the default PATH";
}

TEST(CommandImage, AShellCommand) {
  const auto image = command_image(frame_of({"echo \"$1\"\n\xff", "", "A=1", "HOME=/h", "B="}), configuration());
  ASSERT_TRUE(image);
  EXPECT_EQ(image->candidates, Strings{"/bin/sh"});
  EXPECT_EQ(image->argv, (Strings{"/bin/sh", "-c", "echo \"$1\"\n\xff"}));
  EXPECT_EQ(image->env, (Strings{"PATH=/usr/bin:/bin", "HOME=/h", "A=1", "B="}));
  EXPECT_EQ(image->cwd, "/workspace");
  EXPECT_EQ(image->open_files, 64U);
  EXPECT_EQ(image->file_size, 4096U);
  EXPECT_FALSE(image->extra);
}

TEST(CommandImage, WordsAreLookedUpInTheCommandsOwnPath) {
  const auto image = command_image(frame_of({"git", "log", "", "/tmp", "PATH=/opt/bin"}, {{"shell", false}, {"argc", 3U}}), configuration());
  ASSERT_TRUE(image);
  EXPECT_EQ(image->candidates, Strings{"/opt/bin/git"});
  EXPECT_EQ(image->argv, (Strings{"git", "log", ""}));
  EXPECT_EQ(image->cwd, "/tmp");
}

TEST(CommandImage, ARelativeDirectoryIsInTheDefaultOne) {
  EXPECT_EQ(command_image(frame_of({"x", "sub/dir"}), configuration())->cwd, "/workspace/sub/dir");
}

TEST(CommandImage, LongCommandsGoByDescriptor) {
  const std::size_t limit = 131'072;  // execve(2), MAX_ARG_STRLEN, with the NUL
  for (const std::size_t size : {limit - 1, limit, limit + 1, std::size_t{10} << 20}) {
    const std::string command(size, ':');
    const auto image = command_image(frame_of({command, ""}), configuration());
    ASSERT_TRUE(image);
    for (const auto& argument : image->argv) EXPECT_LT(argument.size(), limit);
    if (size < limit) {
      EXPECT_FALSE(image->extra);
      EXPECT_EQ(image->argv.back().size(), size);
      continue;
    }
    ASSERT_TRUE(image->extra);
    std::string text(size + 100, '\0');
    const ssize_t n = ::pread(image->extra.get(), text.data(), text.size(), 0);
    ASSERT_GT(n, static_cast<ssize_t>(size));
    text.resize(static_cast<std::size_t>(n));
    EXPECT_TRUE(text.ends_with(command));
  }
}

TEST(CommandImage, Refused) {
  const auto huge = std::numeric_limits<std::uint64_t>::max();
  struct Row {
    const char* what;
    wire::Frame frame;
  };
  for (const Row& row : {
           Row{"no arguments", wire::Frame{}},
           Row{"no directory", frame_of({"ls"})},
           Row{"a NUL in the command", frame_of({std::string("a\0b", 3), ""})},
           Row{"a NUL in the directory", frame_of({"ls", std::string("/\0", 2)})},
           Row{"a NUL in a variable", frame_of({"ls", "", std::string("A=\0", 3)})},
           Row{"a variable without =", frame_of({"ls", "", "A"})},
           Row{"a variable without a name", frame_of({"ls", "", "=1"})},
           Row{"argc 0", frame_of({"ls", ""}, {{"argc", 0U}, {"shell", false}})},
           Row{"argc too large", frame_of({"ls", ""}, {{"argc", 2U}, {"shell", false}})},
           Row{"argc that wraps around", frame_of({"ls", ""}, {{"argc", huge}, {"shell", false}})},
           Row{"argc that wraps around", frame_of({"ls", ""}, {{"argc", huge - 1}, {"shell", false}})},
           Row{"two shell commands", frame_of({"ls", "ls", ""}, {{"argc", 2U}})},
       }) {
    const auto image = command_image(row.frame, configuration());
    ASSERT_FALSE(image) << row.what;
    EXPECT_EQ(image.error(), EINVAL) << row.what;
  }
}

}  // namespace
}  // namespace sandy::agent
