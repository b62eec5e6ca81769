#include "verify/judge.h"

#include <gtest/gtest.h>

#include <string>

#include "verify/secret_names.h"

namespace sandy::verify {
namespace {

using Word = AttemptReport::Word;
using namespace std::string_literals;

const Control kWorked{true, ""};
const Control kUntried{false, "refused outside a sandbox too: EPERM"};

Inside inside(Word word, std::string detail = "", bool arrived = false, std::string end = "exited 0") { return {{word, std::move(detail)}, std::move(end), arrived}; }

TEST(ReadReport, TakesOneLineWithTheNonce) {
  const auto report = read_report("n0nce refused EPERM\n", "n0nce");
  EXPECT_EQ(report.word, Word::refused);
  EXPECT_EQ(report.detail, "EPERM");
  EXPECT_EQ(read_report("n0nce done \n", "n0nce").word, Word::done);
  EXPECT_EQ(read_report("n0nce done \n", "n0nce").detail, "");
  EXPECT_EQ(read_report("n0nce absent no such calls\n", "n0nce").detail, "no such calls");
}

TEST(ReadReport, TakesNothingElse) {
  for (const auto& output : {""s, "\n"s, "n0nce"s, "n0nce\n"s, "n0nce \n"s, "n0nce refused"s, "n0nce refused\n"s, "refused EPERM\n"s, "other refused EPERM\n"s, "n0ncerefused EPERM\n"s,
                             "x\nn0nce refused EPERM\n"s, "n0nce refused EPERM\nx\n"s, "n0nce refused EPERM\n\n"s, "n0nce REFUSED EPERM\n"s, "n0nce passed x\n"s, " n0nce refused x\n"s}) {
    EXPECT_EQ(read_report(output, "n0nce").word, Word::none) << output;
  }
  EXPECT_EQ(read_report(" refused x\n", "").word, Word::none);
}

TEST(Judge, PassesWhatWasRefusedInsideAndWorkedOutside) {
  const auto judged = judge(kWorked, inside(Word::refused, "EPERM"), Proof::report);
  EXPECT_EQ(judged.verdict, Verdict::pass);
  EXPECT_EQ(judged.detail, "refused: EPERM");
}

TEST(Judge, FailsWhatSucceeded) {
  EXPECT_EQ(judge(kWorked, inside(Word::done, "x"), Proof::report).verdict, Verdict::fail);
  EXPECT_EQ(judge(kWorked, inside(Word::done, "x"), Proof::report).detail, "succeeded: x");
  EXPECT_EQ(judge(kUntried, inside(Word::done), Proof::report).verdict, Verdict::fail);
}

TEST(Judge, WhatWasSeenOutsideStandsWhateverIsReported) {
  for (const Word word : {Word::none, Word::done, Word::refused, Word::absent}) {
    for (const Proof proof : {Proof::report, Proof::arrival}) {
      for (const Control& control : {kWorked, kUntried}) EXPECT_EQ(judge(control, inside(word, "EPERM", true), proof).verdict, Verdict::fail);
    }
  }
}

TEST(Judge, WhereOnlyArrivalTellsAConnectionIsNone) {
  const auto judged = judge(kWorked, inside(Word::done, "connected"), Proof::arrival);
  EXPECT_EQ(judged.verdict, Verdict::pass);
  EXPECT_EQ(judged.detail, "refused: nothing arrived outside");
}

TEST(Judge, AnAttemptWithoutAReportIsNoPass) {
  for (const Proof proof : {Proof::report, Proof::arrival}) {
    const auto judged = judge(kWorked, inside(Word::none, "", false, "signalled 11"), proof);
    EXPECT_EQ(judged.verdict, Verdict::fail);
    EXPECT_NE(judged.detail.find("signalled 11"), std::string::npos);
  }
}

TEST(Judge, WithoutAControlNothingIsShown) {
  for (const Word word : {Word::none, Word::refused, Word::absent}) {
    const auto judged = judge(kUntried, inside(word, "EPERM"), Proof::report);
    EXPECT_EQ(judged.verdict, Verdict::untried);
    EXPECT_EQ(judged.detail, kUntried.why);
  }
}

TEST(Judge, WhatComesFromInsideIsPrintableAndShort) {
  const auto judged = judge(kWorked, inside(Word::refused, "\x1b[2J" + std::string(5'000, 'x')), Proof::report);
  EXPECT_EQ(judged.detail.find('\x1b'), std::string::npos);
  EXPECT_LT(judged.detail.size(), 300U);
  EXPECT_EQ(shown("\x1b]0;x\x07"), "\\x1b]0;x\\x07");
}

TEST(SecretNames, AreToldByTheirWords) {
  for (const char* const name : {"OPENAI_API_KEY", "GITHUB_TOKEN", "AWS_SECRET_ACCESS_KEY", "PGPASSWORD", "SSH_AUTH_SOCK", "KUBECONFIG", "NPM_CONFIG__AUTH"}) EXPECT_TRUE(may_be_secret(name)) << name;
  for (const char* const name : {"PATH", "HOME", "LANG", "TERM", "USER", "PWD", ""}) EXPECT_FALSE(may_be_secret(name)) << name;
}

TEST(Digest, IsFnv1a) {
  EXPECT_EQ(digest(""), 0xcbf29ce484222325U);
  EXPECT_EQ(digest("a"), 0xaf63dc4c8601ec8cU);
  EXPECT_EQ(digest("foobar"), 0x85944171f73967e8U);
}

}  // namespace
}  // namespace sandy::verify
