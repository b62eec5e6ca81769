#include "session/command_result.h"

#include <gtest/gtest.h>

namespace sandy::session {
namespace {

using wire::Json;

TEST(CommandResult, WhatTheProtocolHasStays) {
  for (const char* text :
       {R"({"id": 3, "ev": "end", "reason": "exited", "code": 255, "wall_ms": 5, "user_ms": 1, "system_ms": 2, "max_rss_kib": 9, "omitted": {"stdout": 7}})",
        R"({"id": 3, "ev": "end", "reason": "signalled", "signal": 64, "core": true, "omitted": {}, "killed": "hog", "memory_kills": 2})",
        R"({"id": 3, "ev": "end", "reason": "could_not_start", "code": 127, "errno": 2, "cwd": true, "detail": "words", "omitted": {}})",
        R"({"id": 3, "ev": "end", "reason": "timed_out", "omitted": {}})", R"({"id": 3, "ev": "end", "reason": "cancelled", "omitted": {}})",
        R"({"id": 3, "ev": "end", "error": "unknown_op", "omitted": {}})"}) {
    EXPECT_EQ(command_result(Json::parse(text)), Json::parse(text)) << text;
  }
}

TEST(CommandResult, NothingElseDoes) {
  const Json end = command_result(Json::parse(R"({"id": 3, "ev": "end", "reason": "exited", "code": 0, "detached": true, "running": true, "wall_time": true, "oom_kills": 5,
    "limit_notes": ["x"], "denials": [1], "wall_ms": -1, "user_ms": 1e9, "core": "yes", "signal": 1000000000000000000, "errno": 4096, "killed": 7, "omitted": {"stdout": "1", "x": 1}, "more": [[[1]]]})"));
  EXPECT_EQ(end, Json::parse(R"({"id": 3, "ev": "end", "reason": "exited", "code": 0, "omitted": {}})"));
}

TEST(CommandResult, TextsArePrintableAndShort) {
  const Json end = command_result({{"id", 1}, {"ev", "end"}, {"error", "\x1b]0;title\x07"}, {"detail", std::string(60'000, '\x1b')}});
  EXPECT_EQ(end["error"].get<std::string>().find('\x1b'), std::string::npos);
  EXPECT_LT(end.dump().size(), 20'000U);
}

TEST(CommandResult, OneThatDoesNotSayHowItEndedIsAnError) {
  for (const char* text : {R"({"id": 1, "ev": "end"})", R"({"id": 1, "ev": "end", "reason": "exited"})", R"({"id": 1, "ev": "end", "reason": "exited", "code": 256})",
                           R"({"id": 1, "ev": "end", "reason": "signalled", "signal": 0})", R"({"id": 1, "ev": "end", "reason": "out_of_memory"})", R"({"id": 1, "ev": "end", "reason": 5})",
                           R"({"id": 1, "ev": "end", "reason": "could_not_start", "code": 127})", R"({"id": 1, "ev": "end", "reason": "nothing", "code": 0})"}) {
    const Json end = command_result(Json::parse(text));
    EXPECT_EQ(end["error"], "agent") << text;
    EXPECT_FALSE(end.contains("reason")) << text;
  }
}

}  // namespace
}  // namespace sandy::session
