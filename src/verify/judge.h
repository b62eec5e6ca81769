// The verdict on one attack: from what it did outside, where nothing forbids it, and in the sandbox. Pure.
//
// What comes from inside is hostile: nothing there can make a PASS out of what was seen to arrive outside, and an attempt without a report, whatever ended
// it, is a FAIL, since it shows nothing.
#pragma once

#include <string>
#include <string_view>

#include "verify/attack.h"

namespace sandy::verify {

// What sandy-attack says (attack/report.h).
struct AttemptReport {
  enum class Word { none, done, refused, absent };
  Word word = Word::none;
  std::string detail;  // as it came
};

// `output` is all that it printed: one line, that begins with the nonce. Anything else is no report.
AttemptReport read_report(std::string_view output, std::string_view nonce);

// The same attempt outside the sandbox, by the same user.
struct Control {
  bool worked = false;
  std::string why;  // otherwise: why it can't be tried here
};

struct Inside {
  AttemptReport report;
  std::string end;          // of one without a report: how it ended
  bool arrived = false;     // seen outside: what it sent, made or changed
  std::string seen = "it was seen outside";  // then: what
};

// What shows success: the attempt's own word, and what was seen outside; or that alone, where the word can't tell (a proxy takes each connection).
enum class Proof { report, arrival };

struct Judgement {
  Verdict verdict = Verdict::fail;
  std::string detail;
};
Judgement judge(const Control& control, const Inside& inside, Proof proof);

// Safe to print, in one line, and not long.
std::string shown(std::string_view text);

}  // namespace sandy::verify
