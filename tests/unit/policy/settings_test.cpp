#include "policy/settings.h"

#include "policy_testing.h"

namespace sandy::policy {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(CheckLimits, EnforceableOnes) {
  const auto policy = valid(
      R"("limits": {"wall_time": "1h30m", "open_files": 1024, "file_size": "1G", "tmp_size": 65536, "log_size": "2M"})");
  const Limits& limits = policy->limits;
  EXPECT_EQ(limits.wall_time_ms, 5'400'000U);
  EXPECT_EQ(limits.open_files, 1024U);
  EXPECT_EQ(limits.file_size, std::uint64_t{1} << 30);
  EXPECT_EQ(limits.tmp_size, 65'536U);
  EXPECT_EQ(limits.log_size, 2'097'152U);
  EXPECT_FALSE(limits.memory || limits.swap || limits.cpus || limits.pids || limits.io_read ||
               limits.io_write);
}

TEST(CheckLimits, TheOthers) {
  LimitsDraft draft;
  draft.memory = {"2G", "--memory"};
  draft.swap = {"0", "--swap"};
  draft.cpus = {"1.5", "--cpus"};
  draft.pids = {"512", "--pids"};
  draft.io_read = {"10M", "--io-read"};
  draft.io_write = {"20M", "--io-write"};
  const auto limits = check_limits(draft);
  ASSERT_TRUE(limits) << limits.error().text();
  EXPECT_EQ(limits->memory, std::uint64_t{2} << 30);
  EXPECT_EQ(limits->swap, 0U);
  EXPECT_EQ(limits->cpus, 1.5);
  EXPECT_EQ(limits->pids, 512U);
  EXPECT_EQ(limits->io_read, 10U << 20);
  EXPECT_EQ(limits->io_write, 20U << 20);
}

TEST(CheckLimits, Refuses) {
  const auto limit = [](const std::string& member) { return "\"limits\": {" + member + "}"; };
  expect_refused({
      {limit(R"("memory": "2X")"), "limits.memory: \"2X\"", {"not a size", "hint"}},
      {limit(R"("memory": 0)"), "limits.memory", {"less than 16M"}},
      {limit(R"("memory": -1)"), "limits.memory", {"negative"}},
      {limit(R"("memory": 18446744073709551615)"), "limits.memory", {"2^63"}},
      {limit(R"("memory": 18446744073709551616)"), "limits.memory", {"64 bits"}},
      {limit(R"("swap": 1e300)"), "limits.swap", {"64 bits"}},
      {limit(R"("cpus": 0)"), "limits.cpus", {"less than 0.01"}},
      {limit(R"("cpus": "lots")"), "limits.cpus", {"not a number of cores"}},
      {limit(R"("cpus": 9000)"), "limits.cpus", {"8192"}},
      {limit(R"("pids": 0)"), "limits.pids", {"less than 8"}},
      {limit(R"("pids": 5000000)"), "limits.pids", {"4194304"}},
      {limit(R"("io_read": 0)"), "limits.io_read", {"nothing could be read"}},
      {limit(R"("io_write": "0k")"), "limits.io_write", {"nothing could be"}},
      {limit(R"("wall_time": 0)"), "limits.wall_time", {"less than 100ms"}},
      {limit(R"("wall_time": "10x")"), "limits.wall_time", {"not a duration"}},
      {limit(R"("wall_time": "400d")"), "limits.wall_time", {"366 days"}},
      {limit(R"("open_files": 3)"), "limits.open_files", {"less than 32"}},
      {limit(R"("open_files": 1048577)"), "limits.open_files", {"1048576"}},
      {limit(R"("file_size": 0)"), "limits.file_size", {"no file could be written"}},
      {limit(R"("file_size": "9223372036854775808")"), "limits.file_size", {"2^63"}},
      {limit(R"("tmp_size": 1)"), "limits.tmp_size", {"less than 64k"}},
      {limit(R"("log_size": "1G")"), "limits.log_size", {"more than 256M"}},
  });
}

TEST(CheckSeccomp, BaseOrFile) {
  EXPECT_EQ(valid("")->seccomp, Seccomp{});
  EXPECT_EQ(valid(R"("seccomp": "strict")")->seccomp, (Seccomp{SeccompBase::strict, "", false}));
  EXPECT_EQ(valid(R"("seccomp": {"unsafe_ptrace": true})")->seccomp,
            (Seccomp{SeccompBase::default_, "", true}));
  EXPECT_EQ(valid(R"("seccomp": {"file": "../own.json"})")->seccomp,
            (Seccomp{SeccompBase::file, "/home/user/project/../own.json", false}));
  expect_refused({
      {R"("seccomp": "strikt")", "seccomp", {"did you mean \"strict\"?"}},
      {R"("seccomp": "/etc/own.json")", "seccomp", {"must be \"default\" or \"strict\""}},
      {R"("seccomp": {"base": "none"})", "seccomp.base", {"must be"}},
      {R"("seccomp": {"base": "strict", "file": "x"})",
       "seccomp.file",
       {"in place of the base policy in seccomp.base"}},
      {R"("seccomp": {"file": ""})", "seccomp.file", {"empty path"}},
  });
}

TEST(CheckEnvironment, PassAndSet) {
  const auto policy = valid(
      R"("environment": {"pass": ["TERM", "LANG", "TERM"], "set": {"A": "1", "_b2": "x=y\nz"}})");
  EXPECT_THAT(policy->environment.pass, ElementsAre("LANG", "TERM"));
  EXPECT_THAT(policy->environment.set,
              ElementsAre(std::pair{"A", "1"}, std::pair{"_b2", "x=y\nz"}));
}

TEST(CheckEnvironment, Refuses) {
  const auto set = [](const std::string& members) {
    return "\"environment\": {\"set\": {" + members + "}}";
  };
  std::string large;
  for (const char name : {'A', 'B', 'C', 'D'}) {
    large += (large.empty() ? "\"" : ", \"") + std::string(1, name) + "\": \"" +
             std::string(32'768, 'x') + "\"";
  }
  std::string many;
  for (int i = 0; i < 1025; ++i) many += (i ? ", \"V" : "\"V") + std::to_string(i) + "\": \"\"";
  expect_refused({
      {set(R"("": "x")"), "environment.set.\"\"", {"not the name of a variable"}},
      {set(R"("A=B": "x")"), "environment.set.\"A=B\"", {"not the name of a variable"}},
      {set(R"("1A": "x")"), "environment.set.1A", {"no digit first"}},
      {set(R"("A B": "x")"), "environment.set.\"A B\"", {"not the name"}},
      {set("\"" + std::string(256, 'A') + "\": \"\""), "environment.set.", {"more than 255 bytes"}},
      {set(R"("A": "x\u0000")"), "environment.set.A", {"NUL"}},
      {set(large), "environment.set", {"more than 131072 bytes together"}},
      {set(many), "environment", {"more than 1024 variables"}},
      {R"("environment": {"pass": ["LC_*"]})",
       "environment.pass[0]",
       {"not the name of a variable"}},
      {R"("environment": {"pass": ["A"], "set": {"A": "1"}})",
       "environment.pass[0]",
       {"contradicts"}},
  });
}

TEST(CheckEnvironment, FlagsMaySetTwiceWhatIsTheSame) {
  EnvironmentDraft draft;
  draft.set = {{"A", "1", "--env"}, {"A", "1", "--env"}};
  EXPECT_TRUE(check_environment(draft));
  draft.set.push_back({"A", "2", "--env"});
  EXPECT_EQ(check_environment(draft).error().what, "--env: \"A\"");
  EXPECT_THAT(check_environment(draft).error().why, HasSubstr("set twice"));
  draft.set = {{"A", std::string("a\0b", 3), "--env"}};
  EXPECT_THAT(check_environment(draft).error().why, HasSubstr("NUL"));
  draft.set = {{"A", std::string(32'769, 'x'), "--env"}};
  EXPECT_THAT(check_environment(draft).error().why, HasSubstr("32768"));
}

TEST(CheckDescription, IsOneLineForPeople) {
  EXPECT_EQ(valid("")->description, "");
  EXPECT_EQ(valid(R"("description": "Für Daten: \"pandas\", 2 % \\ mehr")")->description, "Für Daten: \"pandas\", 2 % \\ mehr");
  const auto of = [](const std::string& text) { return "\"description\": \"" + text + "\""; };
  EXPECT_TRUE(policy_of(policy_json(of(std::string(1024, 'x')))));
  expect_refused({
      {of(std::string(1025, 'x')), "description", {"1024 bytes"}},
      {of("two\\nlines"), "description", {"can't be shown"}},
      {of("a\\ttab"), "description", {"can't be shown"}},
      {of("\\u001b[31mred"), "description", {"can't be shown"}},
      {of("\\u202egnirts"), "description", {"can't be shown"}},
      {R"("description": 7)", "description", {"instead of a string"}},
  });
}

TEST(CheckProcess, Accepts) {
  const auto policy = valid(
      R"("process": {"hostname": "build-1.sandbox.Example", "cwd": "/workspace/./src/", "uid": 1, "gid": 65533})");
  EXPECT_EQ(policy->process, (Process{"build-1.sandbox.Example", "/workspace/src", 1, 65533}));
  EXPECT_TRUE(
      policy_of(policy_json("\"process\": {\"hostname\": \"" + std::string(63, 'a') + "\"}")));
}

TEST(CheckProcess, Refuses) {
  const auto hostname = [](const std::string& name) {
    return "\"process\": {\"hostname\": \"" + name + "\"}";
  };
  expect_refused({
      {hostname(""), "process.hostname", {"empty label"}},
      {hostname("a..b"), "process.hostname", {"empty label"}},
      {hostname("a."), "process.hostname", {"empty label"}},
      {hostname("-a"), "process.hostname", {"starts or ends"}},
      {hostname("a-.b"), "process.hostname", {"starts or ends"}},
      {hostname("a_b"), "process.hostname", {"may only have"}},
      {hostname("a\\nb"), "process.hostname", {"may only have"}},
      {hostname(std::string(64, 'a')), "process.hostname", {"63 bytes"}},
      {hostname(std::string(32, 'a') + "." + std::string(32, 'b')),
       "process.hostname",
       {"64 bytes"}},
      {R"("process": {"cwd": "src"})", "process.cwd", {"must be absolute"}},
      {R"("process": {"cwd": ""})", "process.cwd", {"empty path"}},
      {R"("process": {"uid": 0})", "process.uid", {"as root", "1 to 65533"}},
      {R"("process": {"gid": 0})", "process.gid", {"as root"}},
      {R"("process": {"uid": 65534})", "process.uid", {"nobody"}},
      {R"("process": {"uid": 4294967296000})", "process.uid", {"larger than 65533"}},
      {R"("process": {"uid": -1})", "process.uid", {"negative"}},
  });
}

}  // namespace
}  // namespace sandy::policy
