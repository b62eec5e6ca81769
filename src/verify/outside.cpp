#include "verify/outside.h"

#include <chrono>

#include "host/run_program.h"

namespace sandy::verify {
namespace {

constexpr std::chrono::seconds kLimit{20};

}  // namespace

AttemptReport Outside::attempt(const std::vector<std::string>& words, bool in_namespaces) const {
  std::vector<std::string> argv{program_};
  if (in_namespaces) argv.emplace_back("--namespace");
  argv.push_back(nonce_);
  argv.insert(argv.end(), words.begin(), words.end());
  const auto ran = host::run_program(argv, kLimit, host::ProgramEnvironment::inherited);
  if (!ran) return {AttemptReport::Word::absent, ran.error().text()};
  if (ran->timed_out) return {AttemptReport::Word::absent, "it takes too long"};
  return read_report(ran->out, nonce_);
}

Control Outside::control(const std::vector<std::string>& words, bool in_namespaces) const {
  const auto report = attempt(words, in_namespaces);
  switch (report.word) {
    case AttemptReport::Word::done: return {true, ""};
    case AttemptReport::Word::refused: return {false, "refused outside a sandbox too: " + shown(report.detail)};
    case AttemptReport::Word::absent: return {false, shown(report.detail)};
    case AttemptReport::Word::none: break;
  }
  return {false, "the attempt ends without a report outside a sandbox too"};
}

}  // namespace sandy::verify
