#include "policy/json_writer.h"

#include <random>

#include "policy/base64.h"
#include "policy_testing.h"

namespace sandy::policy {
namespace {

TEST(ToJson, TheDefaultPolicyInFull) {
  EXPECT_EQ(to_json(valid("")), R"({
  "version": 1,
  "filesystem": {
    "workspace": {
      "mode": "private",
      "mount": "/workspace"
    },
    "read": [],
    "write": [],
    "deny": [],
    "unsafe_broad_workspace": false
  },
  "network": {
    "mode": "none"
  },
  "limits": {
    "best_effort": false
  },
  "seccomp": {
    "base": "default",
    "unsafe_ptrace": false
  },
  "environment": {
    "pass": [],
    "set": {}
  },
  "process": {
    "hostname": "sandbox",
    "uid": 1000,
    "gid": 1000
  }
}
)");
}

TEST(ToJson, IsPrintableWhateverTheBytes) {
  const auto policy = valid(
      R"("filesystem": {"read": [{"bytes": "L3Nydi//"}, "/srv/\u009b", "/srv/a\nb", "/srv/é"]},
                               "environment": {"set": {"A": "\u001b[31m", "B": "two\nlines"}})");
  const std::string json = to_json(policy);
  std::string lines = json;
  std::erase(lines, '\n');
  EXPECT_EQ(printable(lines), lines);
  EXPECT_THAT(json, testing::HasSubstr("\"bytes\": \"L3Nydi//\""));
  EXPECT_THAT(json, testing::HasSubstr("\"/srv/a\\nb\""));
  EXPECT_THAT(json, testing::HasSubstr("\"/srv/é\""));
  EXPECT_THAT(json, testing::HasSubstr("\"two\\nlines\""));
}

// Policies at random, from parts that are each valid.
class RandomDraft {
 public:
  explicit RandomDraft(std::uint32_t seed) : random_(seed) {}

  PolicyDraft make() {
    PolicyDraft draft;
    if (flip()) draft.filesystem.workspace.path = {"/w" + name(), "w", true};
    if (flip()) draft.filesystem.workspace.mount = {"/m" + name(), "m", true};
    for (int i = 0; i < 6; ++i) {
      // The number keeps paths apart, so that no two rules contradict.
      Text rule{
          "/srv/" + std::to_string(i) + name() + (flip() ? "/" : "") + (flip() ? "//x/../y" : ""),
          "r", true};
      const std::uint32_t kind = random_() % 3;
      (kind == 0   ? draft.filesystem.read
       : kind == 1 ? draft.filesystem.write
                   : draft.filesystem.deny)
          .push_back(rule);
    }
    const auto number = [&] { return std::to_string(random_() % 900'000 + 70'000); };
    const auto fill = [&](OptionalText& slot, const std::string& value) {
      if (flip()) slot = {value, "n"};
    };
    fill(draft.limits.memory, number() + "k");
    fill(draft.limits.swap, number());
    fill(draft.limits.cpus, std::to_string(random_() % 64) + "." + number());
    fill(draft.limits.pids, number());
    fill(draft.limits.io_read, number() + ".5M");
    fill(draft.limits.io_write, number());
    fill(draft.limits.wall_time, number() + "ms");
    fill(draft.limits.open_files, number());
    fill(draft.limits.file_size, number() + "T");
    fill(draft.limits.tmp_size, number());
    fill(draft.limits.log_size, number());
    draft.limits.best_effort = {true, "b"};
    if (flip()) draft.filesystem.unsafe_broad_workspace = {flip(), "b"};
    if (flip()) draft.seccomp.unsafe_ptrace = {flip(), "b"};
    if (flip()) {
      draft.seccomp.file = {"/f" + name(), "f", true};
    } else if (flip()) {
      draft.seccomp.base = {flip() ? "strict" : "default", "b"};
    }
    for (const char* variable : {"A", "B_2", "_c"}) {
      if (flip()) {
        draft.environment.set.push_back({variable, name(), "e"});
      } else if (flip()) {
        draft.environment.pass.push_back({variable, "e"});
      }
    }
    fill(draft.description, "é " + number());
    fill(draft.process.hostname, "h" + number());
    if (flip()) draft.process.cwd = {"/c" + name(), "c", true};
    fill(draft.process.uid, std::to_string(random_() % 65'533 + 1));
    fill(draft.process.gid, std::to_string(random_() % 65'533 + 1));
    return draft;
  }

 private:
  bool flip() { return random_() % 2 == 0; }
  // Bytes of all kinds but NUL and "/".
  std::string name() {
    static const std::vector<std::string> pieces{"a",
                                                 "é",
                                                 "\n",
                                                 "\t",
                                                 "\"",
                                                 "\\",
                                                 "*",
                                                 "~",
                                                 " ",
                                                 "\xff",
                                                 "\xc3",
                                                 "\x1b",
                                                 "\x7f",
                                                 "\xc2\x9b",
                                                 "\xe2\x82\xac",
                                                 "\xf0\x9f\x98\x80",
                                                 "\xed\xa0\x80",
                                                 "..",
                                                 "'",
                                                 "$"};
    std::string out = "n";
    for (std::uint32_t i = random_() % 6; i > 0; --i) out += pieces[random_() % pieces.size()];
    return out;
  }
  std::mt19937 random_;
};

TEST(ToJson, RoundTrips) {
  const auto without_keys = [](PolicyFields fields) {
    for (PathRule& rule : fields.filesystem.rules) rule.key.clear();
    fields.filesystem.workspace.path_key.clear();
    fields.filesystem.workspace.mount_key.clear();
    return fields;
  };
  RandomDraft random(20);
  for (int i = 0; i < 1000; ++i) {
    const auto first = validate(random.make(), test_caller());
    ASSERT_TRUE(first) << first.error().text();
    const std::string json = to_json(*first);
    const auto draft = read_policy(json);
    ASSERT_TRUE(draft) << draft.error().text() << "\n" << json;
    const auto second = validate(*draft, test_caller());
    ASSERT_TRUE(second) << second.error().text() << "\n" << json;
    ASSERT_EQ(without_keys(first->fields()), without_keys(second->fields())) << json;
    ASSERT_EQ(first->degraded(), second->degraded());
    ASSERT_EQ(to_json(*second), json);
  }
}

// Where the caller stands no longer matters: every path is written in full.
TEST(ToJson, NeedsNoCaller) {
  const auto policy = valid(R"("filesystem": {"read": ["~/a", "b"]}, "seccomp": {"file": "c"})");
  const auto draft = read_policy(to_json(policy));
  ASSERT_TRUE(draft);
  const auto elsewhere = validate(*draft, Caller{"", "", "", 7});
  ASSERT_TRUE(elsewhere) << elsewhere.error().text();
  EXPECT_EQ(to_json(*elsewhere), to_json(policy));
}

}  // namespace
}  // namespace sandy::policy
