#include "policy/json_reader.h"

#include <chrono>

#include "policy/base64.h"
#include "policy_testing.h"

namespace sandy::policy {
namespace {

using testing::HasSubstr;

TEST(ReadPolicy, FillsTheDraftAndRemembersKeys) {
  const auto draft = read_policy(R"({
    "version": 1,
    "filesystem": {
      "workspace": {"mode": "bind", "path": "~/p", "mount": "/w"},
      "read": ["a", {"bytes": "L3Nydi//"}], "write": ["b"], "deny": ["c", "d"],
      "unsafe_broad_workspace": true},
    "network": {"mode": "allowlist", "allow": ["x.org"], "deny": ["y.org"], "allow_private": ["10.0.0.1:80"]},
    "limits": {"memory": "2G", "swap": 0, "cpus": 1.5, "pids": 512, "io_read": 1e3, "io_write": "1M",
               "wall_time": "10m", "open_files": 1024, "file_size": "1G", "tmp_size": "64M", "log_size": 5, "best_effort": true},
    "seccomp": {"file": "own.json", "unsafe_ptrace": false},
    "environment": {"pass": ["LANG"], "set": {"A": "1", "B": {"bytes": "/w=="}}},
    "process": {"hostname": "h", "cwd": "/w/x", "uid": 1001, "gid": 1002}})");
  ASSERT_TRUE(draft) << draft.error().text();
  const auto expect = [](const OptionalText& text, const char* value, const char* key) {
    ASSERT_TRUE(text) << key;
    EXPECT_EQ(text->value, value);
    EXPECT_EQ(text->key, key);
  };
  const FilesystemDraft& filesystem = draft->filesystem;
  expect(filesystem.workspace.mode, "bind", "filesystem.workspace.mode");
  expect(filesystem.workspace.path, "~/p", "filesystem.workspace.path");
  expect(filesystem.workspace.mount, "/w", "filesystem.workspace.mount");
  ASSERT_EQ(filesystem.read.size(), 2U);
  EXPECT_FALSE(filesystem.read[0].literal);
  EXPECT_EQ(filesystem.read[1].value, "/srv/\xff");
  EXPECT_EQ(filesystem.read[1].key, "filesystem.read[1]");
  EXPECT_TRUE(filesystem.read[1].literal);
  EXPECT_EQ(filesystem.write.at(0).value, "b");
  EXPECT_EQ(filesystem.deny.at(1).value, "d");
  EXPECT_TRUE(filesystem.unsafe_broad_workspace->value);
  expect(draft->network.mode, "allowlist", "network.mode");
  EXPECT_EQ(draft->network.allow.at(0).value, "x.org");
  EXPECT_EQ(draft->network.deny.at(0).value, "y.org");
  EXPECT_EQ(draft->network.allow_private.at(0).key, "network.allow_private[0]");
  const LimitsDraft& limits = draft->limits;
  expect(limits.memory, "2G", "limits.memory");
  expect(limits.swap, "0", "limits.swap");
  expect(limits.cpus, "1.5", "limits.cpus");
  expect(limits.pids, "512", "limits.pids");
  expect(limits.io_read, "1000", "limits.io_read");
  expect(limits.io_write, "1M", "limits.io_write");
  expect(limits.wall_time, "10m", "limits.wall_time");
  expect(limits.open_files, "1024", "limits.open_files");
  expect(limits.file_size, "1G", "limits.file_size");
  expect(limits.tmp_size, "64M", "limits.tmp_size");
  expect(limits.log_size, "5", "limits.log_size");
  EXPECT_TRUE(limits.best_effort->value);
  EXPECT_FALSE(draft->seccomp.base);
  expect(draft->seccomp.file, "own.json", "seccomp.file");
  EXPECT_FALSE(draft->seccomp.unsafe_ptrace->value);
  EXPECT_EQ(draft->environment.pass.at(0).value, "LANG");
  ASSERT_EQ(draft->environment.set.size(), 2U);
  EXPECT_EQ(draft->environment.set[1].name, "B");
  EXPECT_EQ(draft->environment.set[1].value, "\xff");
  EXPECT_EQ(draft->environment.set[1].key, "environment.set.B");
  expect(draft->process.hostname, "h", "process.hostname");
  expect(draft->process.cwd, "/w/x", "process.cwd");
  expect(draft->process.uid, "1001", "process.uid");
  expect(draft->process.gid, "1002", "process.gid");
}

TEST(ReadPolicy, SeccompMayBeAString) {
  const auto draft = read_policy(R"({"version": 1, "seccomp": "strict"})");
  ASSERT_TRUE(draft);
  EXPECT_EQ(draft->seccomp.base->value, "strict");
  EXPECT_EQ(draft->seccomp.base->key, "seccomp");
}

TEST(ReadPolicy, WantsVersionOneFirst) {
  EXPECT_THAT(read_policy("{}").error().text(), HasSubstr("version: missing"));
  EXPECT_THAT(read_policy(R"({"nonsense": 1, "version": 2})").error().text(),
              HasSubstr("version: 2: this program reads version 1"));
  EXPECT_THAT(read_policy(R"({"version": "1"})").error().text(), HasSubstr("a string instead of"));
  EXPECT_FALSE(read_policy(R"({"version": 1.5})"));
  EXPECT_THAT(read_policy("[]").error().text(), HasSubstr("an array instead of an object"));
}

TEST(ReadPolicy, RefusesShapes) {
  expect_refused({
      // unknown keys
      {R"("limits": {"memroy": "2G"})",
       "limits.memroy",
       {"unknown key", "did you mean limits.memory?"}},
      {R"("memory": "2G")", "memory", {"unknown key", "did you mean limits.memory?"}},
      {R"("limits.memory": "2G")", "\"limits.memory\"", {"unknown key"}},
      {R"("filesystem": {"workspace.path": "/x"})",
       "filesystem.\"workspace.path\"",
       {"unknown key"}},
      {R"("filesystem": {"": {}})", "filesystem.\"\"", {"unknown key"}},
      {R"("": 1)", "\"\"", {"unknown key"}},
      {R"("filesystem": {"workspace": {"read": []}})",
       "filesystem.workspace.read",
       {"did you mean filesystem.read?"}},
      {R"("x\u001b[31m": 1)", "\"x\\x1b[31m\"", {"unknown key"}},
      {R"("seccomp": {"name": "x"})", "seccomp.name", {"unknown key"}},
      {R"("Limits": {})", "Limits", {"unknown key", "did you mean limits?"}},
      // wrong types
      {R"("filesystem": [])", "filesystem", {"an array instead of an object"}},
      {R"("filesystem": null)", "filesystem", {"null instead of", "leave the key out"}},
      {R"("filesystem": {"read": "/x"})", "filesystem.read", {"a string instead of an array"}},
      {R"("filesystem": {"read": ["/x", 1]})",
       "filesystem.read[1]",
       {"a number instead of a string"}},
      {R"("filesystem": {"read": [["/x"]]})",
       "filesystem.read[0]",
       {"an array instead of a string"}},
      {R"("filesystem": {"unsafe_broad_workspace": 1})",
       "filesystem.unsafe_broad_workspace",
       {"a number instead of true"}},
      {R"("filesystem": {"unsafe_broad_workspace": "true"})",
       "filesystem.unsafe_broad_workspace",
       {"a string"}},
      {R"("limits": {"memory": true})",
       "limits.memory",
       {"a boolean instead of a number or a string"}},
      {R"("limits": {"pids": "512"})", "limits.pids", {"a string instead of a whole number"}},
      {R"("limits": {"pids": 1.5})", "limits.pids", {"whole number"}},
      {R"("seccomp": 1)", "seccomp", {"a number instead of a string or an object"}},
      {R"("environment": {"set": ["A=1"]})", "environment.set", {"an array instead of an object"}},
      {R"("environment": {"set": {"A": 1}})",
       "environment.set.A",
       {"a number instead of a string"}},
      {R"("process": {"uid": "1000"})", "process.uid", {"a string instead of a whole number"}},
      {R"("network": {"allow": [{"bytes": "YQ=="}]})",
       "network.allow[0]",
       {"an object instead of a string"}},
      // bytes
      {R"("filesystem": {"read": [{"bytes": "YQ"}]})", "filesystem.read[0].bytes", {"not base64"}},
      {R"("filesystem": {"read": [{"bytes": "YQ==", "x": 1}]})",
       "filesystem.read[0]",
       {"other than"}},
      {R"("filesystem": {"read": [{"byte": "YQ=="}]})", "filesystem.read[0]", {"other than"}},
      {R"("filesystem": {"read": [{}]})", "filesystem.read[0]", {"other than"}},
      {R"("filesystem": {"read": [{"bytes": 1}]})", "filesystem.read[0].bytes", {"a number"}},
      {R"("filesystem": {"read": [{"bytes": "YQBi"}]})", "filesystem.read[0]", {"NUL"}},
      // parse_json()'s
      {R"("limits": {"pids": 9, "pids": 9})", "limits.pids", {"twice"}},
      {R"("limits": {"memory": 1e999})", "policy: line 1", {"overflow"}},
      {R"("limits": {"cpus": NaN})", "policy: line 1", {}},
      {"\"process\": {\"hostname\": \"\xff\"}", "policy: line 1", {"UTF-8"}},
      {R"("filesystem": {"deny": ["/a\u0000b"]})", "filesystem.deny[0]", {"NUL"}},
      {R"("x": [[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]])", "x", {"deeper than 16"}},
  });
}

TEST(ReadPolicy, HoldsItsLimits) {
  const auto strings = [](std::size_t count) {
    std::string out;
    for (std::size_t i = 0; i < count; ++i) out += (i ? ",\"/" : "\"/") + std::to_string(i) + "\"";
    return out;
  };
  EXPECT_TRUE(read_policy(policy_json("\"filesystem\": {\"read\": [" + strings(2048) +
                                      "], \"deny\": [" + strings(2048) + "]}")));
  EXPECT_THAT(read_policy(policy_json("\"filesystem\": {\"read\": [" + strings(2048) +
                                      "], \"deny\": [" + strings(2049) + "]}"))
                  .error()
                  .text(),
              HasSubstr("filesystem.deny: more than 4096"));
  const auto hostname = [](std::size_t size) {
    return read_policy(
        policy_json("\"process\": {\"hostname\": \"" + std::string(size, 'a') + "\"}"));
  };
  EXPECT_TRUE(hostname(4096));
  EXPECT_THAT(hostname(4097).error().text(), HasSubstr("process.hostname: longer than 4096 bytes"));
  const auto path = [](std::size_t size) {
    return read_policy(policy_json("\"filesystem\": {\"read\": [{\"bytes\": \"" +
                                   base64_encode(std::string(size, '\xff')) + "\"}]}"));
  };
  EXPECT_TRUE(path(4096));
  EXPECT_THAT(path(4097).error().text(), HasSubstr("filesystem.read[0]: longer than 4096 bytes"));
  const auto value = [](std::size_t size) {
    return read_policy(
        policy_json("\"environment\": {\"set\": {\"A\": \"" + std::string(size, 'a') + "\"}}"));
  };
  EXPECT_TRUE(value(32'768));
  EXPECT_THAT(value(32'769).error().text(),
              HasSubstr("environment.set.A: longer than 32768 bytes"));
  EXPECT_THAT(read_policy(policy_json("") + std::string(1024 * 1024, ' ')).error().text(),
              HasSubstr("1048576 bytes"));
}

// A megabyte of anything is refused in well under the time that a quadratic step would take.
TEST(ReadPolicy, HostileInputIsQuick) {
  const auto repeat = [](std::string_view text, std::size_t times) {
    std::string out;
    for (std::size_t i = 0; i < times; ++i) out += text;
    return out;
  };
  std::string distinct_keys = "{\"version\": 1, \"environment\": {\"set\": {";
  for (int i = 0; i < 32'000; ++i) distinct_keys += "\"A" + std::to_string(i) + "\": \"\", ";
  const std::vector<std::string> inputs{
      repeat("[", 1'000'000),
      repeat("{\"a\":", 200'000),
      "[" + repeat("0,", 500'000) + "0]",
      "\"" + repeat("x", 1'000'000) + "\"",
      "\"" + repeat("\\u0041", 170'000) + "\"",
      repeat("9", 1'000'000),
      "0." + repeat("1", 1'000'000),
      repeat("\n", 1'000'000),
      "{\"version\": 1, \"" + repeat("k", 60'000) + "\": 1}",
      distinct_keys + "\"Z\": \"\"}}}",
  };
  for (const std::string& input : inputs) {
    const auto start = std::chrono::steady_clock::now();
    const auto draft = read_policy(input);
    const auto elapsed = std::chrono::steady_clock::now() - start;
    EXPECT_FALSE(draft && validate(*draft, test_caller())) << input.substr(0, 40);
    EXPECT_LT(elapsed, std::chrono::seconds(5)) << input.substr(0, 40);
  }
}

}  // namespace
}  // namespace sandy::policy
