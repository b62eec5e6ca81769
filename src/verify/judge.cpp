#include "verify/judge.h"

#include "base/error.h"

namespace sandy::verify {
namespace {

constexpr std::size_t kMaxShown = 160;

using Word = AttemptReport::Word;

}  // namespace

std::string shown(std::string_view text) {
  if (text.size() <= kMaxShown) return printable(text);
  return printable(text.substr(0, kMaxShown)) + "...";
}

AttemptReport read_report(std::string_view output, std::string_view nonce) {
  if (nonce.empty() || !output.starts_with(nonce) || !output.ends_with('\n')) return {};
  output.remove_prefix(nonce.size());
  output.remove_suffix(1);
  if (!output.starts_with(' ') || output.find('\n') != std::string_view::npos) return {};
  output.remove_prefix(1);
  const auto space = output.find(' ');
  if (space == std::string_view::npos) return {};
  const auto said = output.substr(0, space);
  const Word word = said == "done" ? Word::done : said == "refused" ? Word::refused : said == "absent" ? Word::absent : Word::none;
  if (word == Word::none) return {};
  return {word, std::string(output.substr(space + 1))};
}

Judgement judge(const Control& control, const Inside& inside, Proof proof) {
  // Success stands, whatever the control says.
  if (inside.arrived) return {Verdict::fail, "succeeded: " + shown(inside.seen)};
  if (proof == Proof::report && inside.report.word == Word::done) {
    return {Verdict::fail, inside.report.detail.empty() ? "succeeded" : "succeeded: " + shown(inside.report.detail)};
  }
  if (!control.worked) return {Verdict::untried, shown(control.why)};
  switch (inside.report.word) {
    case Word::refused: return {Verdict::pass, "refused: " + shown(inside.report.detail)};
    case Word::done: return {Verdict::pass, "refused: nothing arrived outside"};
    case Word::absent: return {Verdict::pass, "refused: " + shown(inside.report.detail)};
    case Word::none: break;
  }
  return {Verdict::fail, "nothing is shown: the attempt ended without a report (" + shown(inside.end) + ")"};
}

}  // namespace sandy::verify
