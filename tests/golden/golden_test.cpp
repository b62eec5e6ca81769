// Policies to plans, as text that is compared byte by byte. SANDY_UPDATE_GOLDEN=1 writes the texts anew (then read the diff).
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "fake_host.h"
#include "plan/dump.h"

namespace sandy::testing {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

std::string read_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

Json read_case(const std::string& name) { return Json::parse(read_file(fs::path(SANDY_GOLDEN_CASES) / (name + ".json"))); }

std::vector<std::string> case_names() {
  std::vector<std::string> out;
  for (const auto& entry : fs::directory_iterator(SANDY_GOLDEN_CASES)) {
    if (entry.path().extension() == ".json") out.push_back(entry.path().stem());
  }
  std::ranges::sort(out);
  return out;
}

std::string text_of(const Json& test_case) {
  const auto host = FakeHost::from_json(test_case.value("host", Json::object()));
  if (!host) throw std::runtime_error(host.error().text());
  const auto plan = host->plan(test_case.at("policy").dump());
  return plan ? plan::dump_text(*plan) : "error: " + plan.error().text() + "\n";
}

class Golden : public ::testing::TestWithParam<std::string> {};

TEST_P(Golden, PlanIsAsWritten) {
  const Json test_case = read_case(GetParam());
  for (const auto& [key, value] : test_case.items()) {
    ASSERT_TRUE(key == "about" || key == "policy" || key == "host" || key == "same_plan_as") << "unknown key " << key;
  }
  ASSERT_FALSE(test_case.value("about", "").empty()) << "a case says what it shows";
  const std::string text = text_of(test_case);
  const fs::path file = fs::path(SANDY_GOLDEN_CASES) / (GetParam() + ".txt");
  if (const char* update = std::getenv("SANDY_UPDATE_GOLDEN"); update != nullptr && std::string_view(update) == "1") {
    std::ofstream(file, std::ios::binary) << text;
  }
  ASSERT_TRUE(fs::exists(file)) << "no " << file << ": run with SANDY_UPDATE_GOLDEN=1, and read what it wrote";
  EXPECT_EQ(read_file(file), text) << "the plan changed; if it should: SANDY_UPDATE_GOLDEN=1, and read the diff";
  if (const std::string same = test_case.value("same_plan_as", ""); !same.empty()) {
    EXPECT_EQ(text, text_of(read_case(same)));
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, Golden, ::testing::ValuesIn(case_names()), [](const auto& test) { return test.param; });

TEST(GoldenCases, EachTextHasItsCase) {
  const auto names = case_names();
  EXPECT_GE(names.size(), 18U);
  for (const auto& entry : fs::directory_iterator(SANDY_GOLDEN_CASES)) {
    if (entry.path().extension() != ".txt") continue;
    EXPECT_EQ(std::ranges::count(names, entry.path().stem().string()), 1) << entry.path();
  }
}

TEST(GoldenCases, TheJsonFormIsOneJsonText) {
  for (const auto& name : case_names()) {
    const Json test_case = read_case(name);
    const auto plan = FakeHost::from_json(test_case.value("host", Json::object()))->plan(test_case.at("policy").dump());
    if (!plan) continue;
    const Json json = Json::parse(plan::dump_json(*plan), nullptr, false);
    ASSERT_FALSE(json.is_discarded()) << name;
    EXPECT_EQ(json.at("workspace"), printable(plan->workspace)) << name;
    // The same words, in the same order, as in the text.
    std::string words;
    for (const auto& word : json.at("bwrap")) words += word.get<std::string>() + " ";
    EXPECT_NE(words.find("--unshare-user"), std::string::npos);
    const std::string text = plan::dump_text(*plan);
    for (const auto& word : json.at("bwrap")) {
      if (word == "--" || word == plan::kAgentPath) continue;
      EXPECT_NE(text.find(word.get<std::string>()), std::string::npos) << name << ": " << word;
    }
  }
}

}  // namespace
}  // namespace sandy::testing
