#include "verify/report.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "policy/enforcement.h"

namespace sandy::verify {
namespace {

std::string rows_text(const std::vector<int>& rows) {
  std::string out;
  for (const int row : rows) out += (out.empty() ? "" : ",") + std::to_string(row);
  return out;
}

std::string padded(std::string text, std::size_t width) {
  if (text.size() < width) text.append(width - text.size(), ' ');
  return text;
}

const char* table_word(Verdict verdict) { return verdict == Verdict::pass ? "PASS" : verdict == Verdict::fail ? "FAIL" : "-"; }

std::string what_happened(const Finding& finding) {
  if (finding.verdict == Verdict::untried) return "not possible to try here: " + finding.detail;
  return finding.detail + (finding.allowed_by.empty() ? "" : " (the policy allows it: " + finding.allowed_by + ")");
}

}  // namespace

std::size_t Report::count(Verdict verdict) const {
  return static_cast<std::size_t>(std::ranges::count_if(findings, [&](const Finding& finding) { return finding.verdict == verdict; }));
}

std::string as_table(const Report& report) {
  std::size_t classes = 5, rows = 4, words = 6;
  for (const auto& finding : report.findings) {
    classes = std::max(classes, std::string_view(word(finding.attack.in)).size());
    rows = std::max(rows, rows_text(finding.attack.rows).size());
    words = std::max(words, finding.attack.words.size());
  }
  const auto line = [&](const std::string& in, const std::string& row, const std::string& attack, const std::string& verdict, const std::string& happened) {
    return padded(in, classes) + "  " + padded(row, rows) + "  " + padded(attack, words) + "  " + padded(verdict, 4) + "  " + happened + "\n";
  };
  std::string out = line("class", "rows", "attack", "", "what happened");
  for (const auto& finding : report.findings) {
    out += line(word(finding.attack.in), rows_text(finding.attack.rows), finding.attack.words, table_word(finding.verdict), what_happened(finding));
  }
  if (const auto unenforced = policy::unenforced_words(report.degraded); !unenforced.empty()) out += unenforced + "\n";
  char seconds[32];
  std::snprintf(seconds, sizeof seconds, "%.1f", static_cast<double>(report.milliseconds) / 1000);
  out += std::to_string(report.findings.size()) + " attacks: " + std::to_string(report.count(Verdict::pass)) + " refused, " +
         std::to_string(report.count(Verdict::fail)) + " succeeded, " + std::to_string(report.count(Verdict::untried)) + " not possible to try here (" + seconds + " s)\n";
  return out;
}

std::string as_json(const Report& report) {
  using Json = nlohmann::ordered_json;
  Json attacks = Json::array();
  for (const auto& finding : report.findings) {
    Json attack = {{"name", finding.attack.name}, {"class", word(finding.attack.in)},    {"rows", finding.attack.rows},
                   {"attack", finding.attack.words}, {"verdict", word(finding.verdict)}, {"detail", finding.detail}};
    if (!finding.allowed_by.empty()) attack["allowed_by"] = finding.allowed_by;
    attacks.push_back(std::move(attack));
  }
  const Json out = {{"version", 1},
                    {"sandy", SANDY_VERSION},
                    {"passed", report.count(Verdict::fail) == 0},
                    {"refused", report.count(Verdict::pass)},
                    {"succeeded", report.count(Verdict::fail)},
                    {"untried", report.count(Verdict::untried)},
                    {"seconds", static_cast<double>(report.milliseconds) / 1000},
                    {"degraded", report.degraded},
                    {"attacks", std::move(attacks)}};
  return out.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace sandy::verify
