#include "agent/supervisor.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "agent/command_image.h"
#include "live_processes.h"

namespace sandy::agent {
namespace {

class SupervisorTest : public LiveTest {
 protected:
  SupervisorTest() {
    std::string pattern = "/tmp/sandy-supervisor-XXXXXX";
    if (::mkdtemp(pattern.data()) == nullptr) std::abort();
    directory = pattern;
  }
  ~SupervisorTest() override { std::filesystem::remove_all(directory); }

  std::string make(const std::string& name, const std::string& content, mode_t mode) {
    const std::string path = directory + "/" + name;
    std::ofstream(path) << content;
    ::chmod(path.c_str(), mode);
    return path;
  }
  static CommandImage program(std::vector<std::string> candidates, std::vector<std::string> argv = {"name", "argument"}) {
    CommandImage image = shell("");
    image.candidates = std::move(candidates);
    image.argv = std::move(argv);
    return image;
  }

  std::string directory;
};

TEST_F(SupervisorTest, OutputStatusAndUsage) {
  Runner runner(shell("echo out; echo err >&2; exit 3"));
  EXPECT_EQ(runner.finish(), "out\nerr\n");
  EXPECT_EQ(runner.exit_code(), 3);
  EXPECT_EQ(runner.exec_errno, 0);
  EXPECT_GT(runner.usage.ru_maxrss, 0);
}

TEST_F(SupervisorTest, ASignal) {
  Runner runner(shell("kill -TERM $$"));
  runner.finish();
  ASSERT_TRUE(WIFSIGNALED(runner.status));
  EXPECT_EQ(WTERMSIG(runner.status), SIGTERM);
}

TEST_F(SupervisorTest, EnvironmentAndDirectoryAreTheImages) {
  CommandImage image = shell("pwd; env | sort | grep -v -e ^PWD= -e ^_= -e ^SHLVL= -e ^OLDPWD=");
  image.env.push_back("ODD=two\nlines");
  image.cwd = directory;
  Runner runner(std::move(image));
  EXPECT_THAT(runner.finish(), ::testing::AllOf(::testing::StartsWith(directory + "\n"), ::testing::HasSubstr("ODD=two"), ::testing::HasSubstr("LC_ALL=C"),
                                                ::testing::Not(::testing::HasSubstr("HOME="))));
}

TEST_F(SupervisorTest, OnlyTheStandardDescriptorsAreOpen) {
  const UniqueFd leak(::open("/dev/null", O_RDONLY));  // without CLOEXEC, as another library may do it
  const UniqueFd high(::fcntl(leak.get(), F_DUPFD, 200));
  Runner runner(shell("ls /proc/$$/fd"));
  // A shell may keep descriptors of its own at 10 and above for itself; it has none without a script.
  EXPECT_EQ(runner.finish(), "0\n1\n2\n");
}

TEST_F(SupervisorTest, TheTextOfALongCommandIsRunAndItsDescriptorClosed) {
  wire::Configuration configuration;
  configuration.cwd = "/";
  configuration.environment = {"PATH=/usr/bin:/bin"};
  wire::Frame frame;
  frame.payload = "ls /proc/$$/fd; echo ${#x}; exit 4 # " + std::string(300'000, 'x');
  frame.header = {{"args", {frame.payload.size(), 0U}}};
  auto image = command_image(frame, configuration);
  ASSERT_TRUE(image);
  ASSERT_TRUE(image->extra);
  Runner runner(std::move(*image));
  const std::string output = runner.finish();
  EXPECT_EQ(output.find("\n9\n"), std::string::npos) << output;
  EXPECT_TRUE(output.ends_with("0\n")) << output;
  EXPECT_EQ(runner.exit_code(), 4);
}

TEST_F(SupervisorTest, ASessionOfItsOwnAndDefaultSignals) {
  ::signal(SIGPIPE, SIG_IGN);
  sigset_t blocked, before;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGTERM);
  sigaddset(&blocked, SIGCHLD);
  ::sigprocmask(SIG_BLOCK, &blocked, &before);
  // Fields 5 and 6: process group and session.
  Runner runner(program({"/bin/cat", "/usr/bin/cat"}, {"cat", "/proc/self/stat", "/proc/self/status"}));
  ::sigprocmask(SIG_SETMASK, &before, nullptr);
  ::signal(SIGPIPE, SIG_DFL);
  const std::string output = runner.finish();
  std::istringstream fields(output.substr(output.rfind(") ", output.find('\n')) + 2));
  std::string state;
  pid_t parent = 0, group = 0, session = 0;
  fields >> state >> parent >> group >> session;
  EXPECT_EQ(output.substr(0, output.find(' ')), std::to_string(session));
  EXPECT_EQ(group, session);
  EXPECT_EQ(parent, runner.pid);
  EXPECT_THAT(output, ::testing::HasSubstr("SigBlk:\t0000000000000000"));
  std::istringstream ignored(output.substr(output.find("SigIgn:\t") + 8));
  std::uint64_t mask = 0;
  ignored >> std::hex >> mask;
  EXPECT_EQ(mask >> (SIGPIPE - 1) & 1, 0U) << "a writer to a closed pipe must end";
}

TEST_F(SupervisorTest, ResourceLimits) {
  CommandImage image = shell("ulimit -n; ulimit -Hn; ulimit -f");
  image.open_files = 77;
  image.file_size = 10 * 512;
  Runner runner(std::move(image));
  const std::string output = runner.finish();
  EXPECT_TRUE(output == "77\n77\n10\n" || output == "77\n77\n5\n") << output;  // blocks of 512 or 1024 bytes
}

TEST_F(SupervisorTest, WhyAProgramCouldNotBeRun) {
  const std::string plain = make("plain", "#!/bin/sh\n", 0644), orphan = make("orphan", "#!/no/such/interpreter\n", 0755);
  const std::string good = make("good", "#!/bin/sh\necho \"$0\" \"$1\"\n", 0755);
  const std::string none = directory + "/none", through_file = plain + "/x";
  struct Row {
    std::vector<std::string> candidates;
    int error, code;
  };
  for (const Row& row : {Row{{none}, ENOENT, 127}, Row{{}, ENOENT, 127}, Row{{through_file}, ENOENT, 127}, Row{{plain}, EACCES, 126},
                         Row{{directory}, EACCES, 126}, Row{{orphan}, ENOENT, 127}, Row{{plain, none}, EACCES, 126}, Row{{none, plain}, EACCES, 126}}) {
    Runner runner(program(row.candidates));
    EXPECT_EQ(runner.finish(), "");
    EXPECT_EQ(runner.exec_errno, row.error) << ::testing::PrintToString(row.candidates);
    EXPECT_EQ(runner.exit_code(), row.code);
    EXPECT_FALSE(runner.chdir_failed);
  }
  Runner found(program({none, plain, good}));
  EXPECT_EQ(found.finish(), good + " argument\n");
  EXPECT_EQ(found.exec_errno, 0);
}

TEST_F(SupervisorTest, AScriptWithoutAnInterpreterIsTheShells) {
  const std::string script = make("script", "echo \"$0|$1|$#\"\n", 0755);
  Runner runner(program({script}));
  EXPECT_EQ(runner.finish(), script + "|argument|1\n");
  EXPECT_EQ(runner.exec_errno, 0);
}

TEST_F(SupervisorTest, ADirectoryThatIsNotThere) {
  for (const auto& [path, error] : {std::pair{directory + "/none", ENOENT}, std::pair{make("file", "", 0644), ENOTDIR}}) {
    CommandImage image = shell("echo never");
    image.cwd = path;
    Runner runner(std::move(image));
    EXPECT_EQ(runner.finish(), "");
    EXPECT_EQ(runner.exec_errno, error);
    EXPECT_TRUE(runner.chdir_failed);
  }
}

TEST_F(SupervisorTest, EndsWithTheCommandButStaysForWhatItLeft) {
  Runner runner(shell("(setsid sleep 1000 &); exit 5"));
  ASSERT_TRUE(runner.wait_ended());
  EXPECT_EQ(WEXITSTATUS(runner.supervisor->status()), 5);
  ASSERT_TRUE(wait_until([&] { return descendants_of(runner.pid).size() == 1; }));
  EXPECT_EQ(::waitpid(runner.pid, nullptr, WNOHANG | __WALL), 0) << "the supervisor ended before its descendants";
  EXPECT_TRUE(kill_descendants(runner.pid));
  EXPECT_TRUE(runner.wait_gone());
}

TEST_F(SupervisorTest, ASupervisorThatIsKilled) {
  Runner runner(shell("(setsid sleep 1000 &); echo started; kill -KILL $PPID; sleep 1000"));
  ASSERT_TRUE(runner.wait_gone());
  EXPECT_TRUE(WIFSIGNALED(runner.supervisor_status));
  EXPECT_FALSE(runner.supervisor->ended());
  // Its processes are ours now, and nobody else's: the agent kills such strays.
  ASSERT_TRUE(wait_until([&] { return descendants_of(::getpid()).size() >= 2; }));
  kill_children_except({});
  while (::waitpid(-1, nullptr, __WALL) > 0) {}
  EXPECT_TRUE(descendants_of(::getpid()).empty());
  runner.supervisor->note_status(9);
  EXPECT_TRUE(runner.supervisor->ended());
  EXPECT_EQ(runner.supervisor->status(), 9);
}

TEST_F(SupervisorTest, ManyAtATime) {
  std::vector<std::unique_ptr<Runner>> runners;
  for (int i = 0; i < 20; ++i) runners.push_back(std::make_unique<Runner>(shell("sleep 0.05; echo " + std::to_string(i) + "; exit " + std::to_string(i))));
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(runners[static_cast<std::size_t>(i)]->finish(), std::to_string(i) + "\n");
    EXPECT_EQ(runners[static_cast<std::size_t>(i)]->exit_code(), i);
  }
}

}  // namespace
}  // namespace sandy::agent
