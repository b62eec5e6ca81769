#include "host/run_program.h"

#include <gtest/gtest.h>
#include <sys/wait.h>

#include "test_directory.h"

namespace sandy::host {
namespace {

using namespace std::chrono_literals;

Result<ProgramResult> shell(const std::string& command, std::chrono::milliseconds limit = 20s) { return run_program({"/bin/sh", "-c", command}, limit); }

TEST(RunProgram, OutputsAndStatus) {
  const auto result = shell("echo out; echo err >&2; exit 7");
  ASSERT_TRUE(result) << result.error().text();
  EXPECT_EQ(result->out, "out\n");
  EXPECT_EQ(result->err, "err\n");
  EXPECT_TRUE(WIFEXITED(result->status));
  EXPECT_EQ(WEXITSTATUS(result->status), 7);
  EXPECT_FALSE(result->timed_out);
}

TEST(RunProgram, EnvironmentAndInputAreEmpty) {
  const WithEnvironment environment{{"SANDY_TEST_SECRET", "x"}};
  const auto result = run_program({"/usr/bin/env"}, 20s);
  ASSERT_TRUE(result) << result.error().text();
  EXPECT_EQ(result->out, "LC_ALL=C\n");
  EXPECT_EQ(shell("cat | wc -c | tr -d ' '")->out, "0\n");
}

TEST(RunProgram, OutputBeyondTheLimitIsDroppedAndTheProgramEnds) {
  const auto result = shell("head -c 3000001 /dev/zero; head -c 3000000 /dev/zero >&2; exit 3");
  ASSERT_TRUE(result);
  EXPECT_EQ(result->out.size(), 262'144U);
  EXPECT_EQ(result->err.size(), 262'144U);
  EXPECT_EQ(WEXITSTATUS(result->status), 3);
}

TEST(RunProgram, TimeLimit) {
  const auto start = std::chrono::steady_clock::now();
  const auto result = shell("echo before; exec sleep 60", 300ms);
  ASSERT_TRUE(result);
  EXPECT_TRUE(result->timed_out);
  EXPECT_EQ(result->out, "before\n");
  EXPECT_TRUE(WIFSIGNALED(result->status));
  EXPECT_LT(std::chrono::steady_clock::now() - start, 20s);
}

// Nothing more is printed, and the program goes on.
TEST(RunProgram, TimeLimitOfAProgramThatClosedItsOutput) {
  const auto start = std::chrono::steady_clock::now();
  const auto result = shell("exec >&- 2>&-; exec sleep 60", 300ms);
  ASSERT_TRUE(result);
  EXPECT_TRUE(result->timed_out);
  EXPECT_LT(std::chrono::steady_clock::now() - start, 20s);
}

TEST(RunProgram, APrinterThatNeverStops) {
  const auto result = shell("exec cat /dev/zero", 300ms);
  ASSERT_TRUE(result);
  EXPECT_TRUE(result->timed_out);
  EXPECT_EQ(result->out.size(), 262'144U);
}

TEST(RunProgram, WhatCannotBeStarted) {
  const auto result = run_program({"/no/such/program"}, 1s);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().why, "No such file or directory");
}

TEST(RunProgram, TheEnvironmentIsEmptyUnlessItIsInherited) {
  ::setenv("RUN_PROGRAM_TEST", "mine", 1);
  const auto empty = run_program({"/usr/bin/env"}, 5s);
  const auto inherited = run_program({"/usr/bin/env"}, 5s, ProgramEnvironment::inherited);
  ::unsetenv("RUN_PROGRAM_TEST");
  ASSERT_TRUE(empty && inherited);
  EXPECT_EQ(empty->out, "LC_ALL=C\n");
  EXPECT_NE(("\n" + inherited->out).find("\nRUN_PROGRAM_TEST=mine\n"), std::string::npos);
}

TEST(RunProgram, LeavesNoDescriptors) {
  auto open_descriptors = [] { return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {}); };
  const auto before = open_descriptors();
  for (int i = 0; i < 3; ++i) (void)shell("exit 0");
  EXPECT_EQ(open_descriptors(), before);
}

}  // namespace
}  // namespace sandy::host
