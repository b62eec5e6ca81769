#include "session/event_gate.h"

#include <gtest/gtest.h>

namespace sandy::session {
namespace {

using wire::Json;

wire::Frame event(const char* text, std::size_t payload = 0) {
  wire::Frame out;
  out.header = Json::parse(text);
  out.payload.assign(payload, 'x');
  return out;
}

TEST(EventGate, TheEventsOfACommand) {
  EventGate gate;
  gate.note_request(4);
  gate.note_sent(6);
  EXPECT_TRUE(gate.admit(event(R"({"id": 1, "ev": "started", "pid": 7})")));
  EXPECT_TRUE(gate.admit(event(R"({"id": 1, "ev": "credit", "bytes": 10})")));
  EXPECT_TRUE(gate.admit(event(R"({"id": 1, "ev": "stdout"})", 5)));
  EXPECT_TRUE(gate.admit(event(R"({"id": 1, "ev": "stderr", "tail": true})", 1)));
  EXPECT_TRUE(gate.admit(event(R"({"id": 1, "ev": "data"})", 1)));
  EXPECT_EQ(gate.under_way(), 3 * wire::kLeastCharge);
  EXPECT_TRUE(gate.admit(event(R"({"id": 1, "ev": "end", "reason": "exited", "code": 0, "omitted": {"stdout": 0}})")));
}

TEST(EventGate, StreamDataIsLimitedByCredit) {
  EventGate gate;
  EXPECT_TRUE(gate.admit(event(R"({"id": 1, "ev": "stdout"})", wire::kWindowBytes - 256)));
  EXPECT_TRUE(gate.admit(event(R"({"id": 1, "ev": "stdout"})", 1)));
  EXPECT_FALSE(gate.admit(event(R"({"id": 1, "ev": "stdout"})", 1)));
  gate.give_back(300);
  EXPECT_FALSE(gate.admit(event(R"({"id": 1, "ev": "stderr"})", 301)));
  EXPECT_TRUE(gate.admit(event(R"({"id": 1, "ev": "stderr"})", 300)));
  gate.give_back(~0ULL);  // more than was sent
  EXPECT_EQ(gate.under_way(), 0U);
  EXPECT_FALSE(gate.admit(event(R"({"id": 1, "ev": "data"})", wire::kWindowBytes + 1)));
}

// Each has a header, which takes memory where nobody reads.
TEST(EventGate, SmallEventsAreLimitedInNumber) {
  EventGate gate;
  std::size_t count = 0;
  while (gate.admit(event(R"({"id": 1, "ev": "stdout"})", 1))) ++count;
  EXPECT_EQ(count, wire::kWindowBytes / wire::kLeastCharge);
}

TEST(EventGate, EventsWithoutDataComeOnlyAsOftenAsTheRequesterSentSomething) {
  EventGate gate;
  gate.note_sent(5);
  EXPECT_TRUE(gate.admit(event(R"({"id": 1, "ev": "credit", "bytes": 1})")));
  EXPECT_FALSE(gate.admit(event(R"({"id": 1, "ev": "credit", "bytes": 1})")));
  EXPECT_TRUE(gate.admit(event(R"({"id": 1, "ev": "started"})")));
  EXPECT_FALSE(gate.admit(event(R"({"id": 1, "ev": "started"})")));
  gate.note_sent();
  EXPECT_FALSE(gate.admit(event(R"({"id": 1, "ev": "drained", "x": 1})")));
  gate.note_sent();
  EXPECT_TRUE(gate.admit(event(R"({"id": 1, "ev": "drained"})")));
  EXPECT_FALSE(gate.admit(event(R"({"id": 1, "ev": "drained"})")));
  EXPECT_FALSE(gate.admit(event(R"({"id": 1, "ev": "stdout"})")));
}

TEST(EventGate, CreditIsForWhatWasSent) {
  EventGate gate;
  gate.note_request(10);
  gate.note_sent(100);
  gate.note_sent();
  EXPECT_TRUE(gate.admit(event(R"({"id": 1, "ev": "credit", "bytes": 60})")));
  EXPECT_EQ(gate.not_credited(), 50U);
  EXPECT_EQ(gate.data_not_credited(), 50U);
  EXPECT_TRUE(gate.admit(event(R"({"id": 1, "ev": "credit", "bytes": 50})")));
  EXPECT_FALSE(gate.admit(event(R"({"id": 1, "ev": "credit", "bytes": 1})")));
}

TEST(EventGate, NothingAfterTheEnd) {
  EventGate gate;
  EXPECT_TRUE(gate.admit(event(R"({"id": 1, "ev": "end"})")));
  EXPECT_FALSE(gate.admit(event(R"({"id": 1, "ev": "end"})")));
  EXPECT_FALSE(gate.admit(event(R"({"id": 1, "ev": "stdout"})", 1)));
}

TEST(EventGate, HeadersHoldNothingElse) {
  const std::string large(60'000, 'x');
  for (const std::string& text :
       {std::string(R"({"id": 1, "ev": "stdout", "more": ")") + large + "\"}", std::string(R"({"id": 1, "ev": "stdout", "tail": ")") + large + "\"}",
        std::string(R"({"id": 1, "ev": "stdout", "tail": 1})"), std::string(R"({"id": 1, "ev": "stdout", "tail": true, "x": 1})"),
        std::string(R"({"id": 1, "ev": "nothing"})"), std::string(R"({"id": 1, "ev": 1})"), std::string(R"({"id": 1})"),
        std::string(R"({"id": 1, "op": "exec"})")}) {
    EventGate gate;
    EXPECT_FALSE(gate.admit(event(text.c_str(), 1))) << text.substr(0, 60);
  }
  for (const char* text : {R"({"id": 1, "ev": "credit", "bytes": "1"})", R"({"id": 1, "ev": "credit", "bytes": -1})", R"({"id": 1, "ev": "credit", "x": 1})",
                           R"({"id": 1, "ev": "started", "pid": []})", R"({"id": 1, "ev": "started", "pid": 1, "x": 1})"}) {
    EventGate gate;
    gate.note_sent();
    EXPECT_FALSE(gate.admit(event(text))) << text;
  }
  EventGate gate;
  gate.note_sent();
  EXPECT_FALSE(gate.admit(event(R"({"id": 1, "ev": "credit", "bytes": 1})", 100))) << "a payload that no credit limits";
}

}  // namespace
}  // namespace sandy::session
