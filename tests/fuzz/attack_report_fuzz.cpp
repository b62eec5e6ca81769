// links: sandy_verdicts
// What an attack prints in its sandbox, whatever it is: it makes no success that was seen outside a PASS, and no line of the table but its own.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "base/error.h"
#include "broken.h"
#include "verify/judge.h"
#include "verify/report.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace sandy::verify;
  using Word = AttemptReport::Word;
  const std::string output(data, data + size), nonce = "NONCE";
  Inside inside;
  inside.report = read_report(output, nonce);
  inside.end = output;
  const bool says = inside.report.word != Word::none;
  if (says && (!output.starts_with(nonce + ' ') || std::ranges::count(output, '\n') != 1)) broken("a report is one line with the nonce");
  if (read_report(output, "").word != Word::none || read_report(output, "ANOTHER").word != Word::none) broken("a report without the nonce");
  for (const bool worked : {false, true}) {
    for (const bool arrived : {false, true}) {
      for (const Proof proof : {Proof::report, Proof::arrival}) {
        inside.arrived = arrived;
        inside.seen = output;
        const Judgement judgement = judge({worked, output}, inside, proof);
        const bool succeeded = arrived || (proof == Proof::report && inside.report.word == Word::done);
        if (succeeded != (judgement.verdict == Verdict::fail) && (says || succeeded || !worked)) broken("a success is a FAIL, and nothing else that says something");
        if (judgement.verdict == Verdict::pass && (!worked || !says)) broken("a PASS needs a control that worked, and a report");
        if (sandy::printable(judgement.detail) != judgement.detail) broken("what is told is printable");
        Report report;
        report.findings.push_back({{"name", AttackClass::files, {33}, "words"}, judgement.verdict, judgement.detail, {}});
        if (std::ranges::count(as_table(report), '\n') != 3) broken("a line each");
        const auto parsed = nlohmann::json::parse(as_json(report), nullptr, false);
        if (parsed.is_discarded() || parsed["attacks"].size() != 1) broken("the JSON is one's");
      }
    }
  }
  return 0;
}
