#include "policy/filesystem_rules.h"

#include "policy/path_checks.h"
#include "policy_testing.h"

namespace sandy::policy {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::pair<std::string, Access>> rules(const SandboxPolicy& policy) {
  std::vector<std::pair<std::string, Access>> out;
  for (const PathRule& rule : policy->filesystem.rules) out.emplace_back(rule.path, rule.access);
  return out;
}

// "filesystem": {…}
std::string fs(const std::string& members) {
  return "\"filesystem\": {" + members + "}";
}

TEST(CheckFilesystem, DefaultIsAPrivateWorkspace) {
  EXPECT_EQ(valid("")->filesystem, Filesystem{});
  EXPECT_EQ(
      valid(fs(R"("workspace": {"mode": "private", "mount": "/w//x/"})"))->filesystem.workspace,
      (Workspace{WorkspaceMode::private_, "", "/w/x"}));
}

TEST(CheckFilesystem, APathMeansBind) {
  const Workspace expected{WorkspaceMode::bind, "/home/user/project", "/workspace"};
  EXPECT_EQ(valid(fs(R"("workspace": {"path": "."})"))->filesystem.workspace, expected);
  EXPECT_EQ(
      valid(fs(R"("workspace": {"path": "~/project/", "mode": "bind"})"))->filesystem.workspace,
      expected);
  // The current directory at its own path, as `sandy run` has it.
  EXPECT_EQ(valid(fs(R"("workspace": {"path": ".", "mount": "/home/user/project"})"))
                ->filesystem.workspace.mount,
            "/home/user/project");
  EXPECT_TRUE(policy_of(policy_json(fs(R"("workspace": {"path": "/dev/shm/x"})"))));
}

TEST(CheckFilesystem, RulesAreNormalizedSortedAndMerged) {
  const auto policy =
      valid(fs(R"("read": ["/srv/b", "~/data/", "/srv//b/."], "write": ["/srv/b/out"],
                                  "deny": ["/srv/b/./secret", "/srv/a"])"));
  EXPECT_THAT(
      rules(policy),
      ElementsAre(std::pair{"/home/user/data", Access::read}, std::pair{"/srv/a", Access::deny},
                  std::pair{"/srv/b", Access::read}, std::pair{"/srv/b/out", Access::write},
                  std::pair{"/srv/b/secret", Access::deny}));
  EXPECT_EQ(policy->filesystem.rules[0].key, "filesystem.read[1]");
}

TEST(CheckFilesystem, NamesKeepTheirBytes) {
  const auto policy =
      valid(fs(R"("read": ["/srv/a\nb", "/srv/\"q'\\", {"bytes": "L3Nydi//Kn4="}, "/srv/[id]?"])"));
  EXPECT_THAT(
      rules(policy),
      ElementsAre(std::pair{"/srv/\"q'\\", Access::read}, std::pair{"/srv/[id]?", Access::read},
                  std::pair{"/srv/a\nb", Access::read}, std::pair{"/srv/\xff*~", Access::read}));
}

TEST(CheckFilesystem, AllowInDenyAndDenyInAllowAreFine) {
  EXPECT_TRUE(policy_of(
      policy_json(fs(R"("read": ["/srv", "/srv/a/b"], "deny": ["/srv/a", "/usr/bin/curl"])"))));
  EXPECT_TRUE(policy_of(policy_json(fs(
      R"("workspace": {"path": "."}, "deny": ["./.env"], "read": ["./.git", ".."], "write": ["./.git/objects"])"))));
}

TEST(CheckFilesystem, AWriteRuleForTheWorkspaceItselfIsMerged) {
  const auto policy = valid(
      fs(R"("workspace": {"path": ".", "mount": "/home/user/project"}, "write": [".", "/srv/x"])"));
  EXPECT_THAT(rules(policy), ElementsAre(std::pair{"/srv/x", Access::write}));
}

TEST(CheckFilesystem, BroadIsAllowedWithTheUnsafeKey) {
  const auto policy = valid(
      fs(R"("workspace": {"path": "~"}, "write": ["/usr", "/"], "unsafe_broad_workspace": true)"));
  EXPECT_EQ(policy->filesystem.workspace.path, "/home/user");
  EXPECT_TRUE(policy->filesystem.unsafe_broad_workspace);
  EXPECT_THAT(rules(policy),
              ElementsAre(std::pair{"/", Access::write}, std::pair{"/usr", Access::write}));
}

TEST(CheckFilesystem, Refuses) {
  expect_refused({
      // workspace
      {fs(R"("workspace": {"mode": "bind"})"),
       "filesystem.workspace.mode",
       {"needs a host directory"}},
      {fs(R"("workspace": {"mode": "private", "path": "/x"})"),
       "filesystem.workspace.path",
       {"takes no path"}},
      {fs(R"("workspace": {"mode": "privat"})"),
       "filesystem.workspace.mode",
       {"did you mean \"private\""}},
      {fs(R"("workspace": {"path": ""})"), "filesystem.workspace.path", {"empty path"}},
      {fs(R"("workspace": {"path": "/"})"),
       "filesystem.workspace.path",
       {"whole file system", "unsafe_broad_workspace"}},
      {fs(R"("workspace": {"path": "~"})"), "filesystem.workspace.path", {"home directory"}},
      {fs(R"("workspace": {"path": "/home/./user/"})"),
       "filesystem.workspace.path",
       {"home directory"}},
      {fs(R"("workspace": {"path": "~/.local"})"), "filesystem.workspace.path", {"state is in it"}},
      {fs(R"("workspace": {"path": "~/.local/state/sandy/x"})"),
       "filesystem.workspace.path",
       {"Sandy's own state"}},
      {fs(R"("workspace": {"path": "/etc"})"), "filesystem.workspace.path", {"/etc"}},
      {fs(R"("workspace": {"path": "/proc/self/cwd"}, "unsafe_broad_workspace": true)"),
       "filesystem.workspace.path",
       {"/proc", "never a workspace"}},
      {fs(R"("workspace": {"path": "/dev/shm"}, "unsafe_broad_workspace": true)"),
       "filesystem.workspace.path",
       {"/dev"}},
      // mount
      {fs(R"("workspace": {"mount": "work"})"), "filesystem.workspace.mount", {"must be absolute"}},
      {fs(R"("workspace": {"mount": "/"})"),
       "filesystem.workspace.mount",
       {"hide the sandbox's own /usr"}},
      {fs(R"("workspace": {"mount": "/x/.."})"),
       "filesystem.workspace.mount",
       {"can't be named with \"..\""}},
      {fs(R"("workspace": {"mount": "/usr"})"), "filesystem.workspace.mount", {"hide"}},
      {fs(R"("workspace": {"mount": "/etc"})"), "filesystem.workspace.mount", {"hide"}},
      {fs(R"("workspace": {"mount": "/tmp"})"), "filesystem.workspace.mount", {"hide"}},
      {fs(R"("workspace": {"mount": "/run"})"), "filesystem.workspace.mount", {"hide"}},
      {fs(R"("workspace": {"mount": "/var"})"), "filesystem.workspace.mount", {"hide"}},
      {fs(R"("workspace": {"mount": "/dev"})"), "filesystem.workspace.mount", {"hide"}},
      {fs(R"("workspace": {"mount": "/proc/x"})"),
       "filesystem.workspace.mount",
       {"no directory can be made"}},
      {fs(R"("workspace": {"mount": "/dev/shm/x"})"),
       "filesystem.workspace.mount",
       {"no directory can be made"}},
      {fs(R"("workspace": {"mount": "/usr/src/app"})"),
       "filesystem.workspace.mount",
       {"no directory can be made"}},
      {fs(R"("workspace": {"path": "/", "mount": "/"}, "unsafe_broad_workspace": true)"),
       "filesystem.workspace.mount",
       {"hide"}},
      // rules, one by one
      {fs(R"("read": [""])"), "filesystem.read[0]", {"empty path"}},
      {fs(R"("read": ["~root"])"), "filesystem.read[0]", {"~user"}},
      {fs(R"("deny": ["/x", "/**/*.pem"])"), "filesystem.deny[1]", {"patterns are not supported"}},
      {fs(R"("read": ["/proc"])"), "filesystem.read[0]", {"made fresh"}},
      {fs(R"("deny": ["/proc/kcore"])"), "filesystem.deny[0]", {"made fresh"}},
      {fs(R"("write": ["/dev/null"], "unsafe_broad_workspace": true)"),
       "filesystem.write[0]",
       {"made fresh"}},
      {fs(R"("read": ["/../sys/"])"), "filesystem.read[0]", {"/sys is made fresh"}},
      {fs(R"("read": ["~/.local/state/sandy"])"), "filesystem.read[0]", {"control sockets"}},
      {fs(R"("write": ["~/.local/state/sandy/x"], "unsafe_broad_workspace": true)"),
       "filesystem.write[0]",
       {"control sockets"}},
      {fs(R"("write": ["/"])"), "filesystem.write[0]", {"whole file system"}},
      {fs(R"("write": ["~"])"), "filesystem.write[0]", {"home directory"}},
      {fs(R"("write": ["/tmp"])"), "filesystem.write[0]", {"shared"}},
      {fs(R"("write": ["/usr/local/bin"])"), "filesystem.write[0]", {"/usr"}},
      {fs(R"("write": ["/var"])"), "filesystem.write[0]", {"is in it"}},
      {fs(R"("write": ["/run/user/1000"])"), "filesystem.write[0]", {"sockets"}},
      // rules against each other
      {fs(R"("read": ["/srv/x"], "write": ["/srv//x/"])"),
       "filesystem.write[0]",
       {"contradicts filesystem.read[0]", "says read"}},
      // the same text is the same path, wherever it leads
      {fs(R"("read": ["/srv/y/../x"], "write": ["/srv/y/.././x"])"),
       "filesystem.write[0]",
       {"contradicts filesystem.read[0]"}},
      {fs(R"("write": ["/srv/x"], "deny": ["/srv/./x"])"),
       "filesystem.deny[0]",
       {"contradicts filesystem.write[0]"}},
      {fs(R"("read": ["/srv/x"], "deny": ["/srv/x"])"),
       "filesystem.deny[0]",
       {"contradicts filesystem.read[0]"}},
      // rules against the workspace
      {fs(R"("workspace": {"path": "."}, "deny": ["."])"),
       "filesystem.deny[0]",
       {"workspace itself"}},
      {fs(R"("workspace": {"path": "."}, "deny": ["~"])"),
       "filesystem.deny[0]",
       {"the workspace is in it"}},
      {fs(R"("deny": ["/workspace"])"), "filesystem.deny[0]", {"workspace itself"}},
      {fs(R"("deny": ["/"])"), "filesystem.deny[0]", {"the workspace is in it"}},
      {fs(R"("workspace": {"mount": "/a/b"}, "deny": ["/a"])"),
       "filesystem.deny[0]",
       {"the workspace is in it"}},
      {fs(R"("workspace": {"path": "."}, "read": ["."])"),
       "filesystem.read[0]",
       {"contradicts filesystem.workspace.path"}},
      {fs(R"("workspace": {"path": ".", "mount": "/home/user/project"}, "read": ["."])"),
       "filesystem.read[0]",
       {"contradicts filesystem.workspace.path"}},
      {fs(R"("read": ["/workspace"])"), "filesystem.read[0]", {"would hide it"}},
      {fs(R"("workspace": {"path": ".", "mount": "/srv/w"}, "write": ["/srv/w"])"),
       "filesystem.write[0]",
       {"would hide it"}},
  });
}

// What ".." leads to depends on links: those paths are checked when they are resolved.
TEST(CheckFilesystem, LeavesDotDotToTheHost) {
  const auto policy = valid(
      fs(R"("workspace": {"path": "./..", "mount": "/home/user/project/.."},
            "read": ["/x/../sys", "/srv/y/../x", "/usr/../usr"], "write": ["/srv/x", "/etc/../srv"],
            "deny": ["/usr/../home", "/workspace/.."])"));
  EXPECT_EQ(policy->filesystem.workspace.path, "/home/user/project/..");
  EXPECT_EQ(policy->filesystem.workspace.mount, "/home/user/project/..");
  EXPECT_EQ(policy->filesystem.rules.size(), 7U);
}

// check_paths() once more, as plan/ asks it: the paths that these lead to.
TEST(CheckPaths, OfAnotherPathThanWasWritten) {
  const std::string members =
      R"("workspace": {"path": "/w/x", "mount": "/w/x"}, "read": ["/r"], "deny": ["/d"])";
  const auto written = valid(fs(members))->filesystem;
  ASSERT_EQ(written.rules.size(), 2U);  // "/d", "/r"
  ASSERT_TRUE(check_paths(written, test_caller(), written));
  const auto refusal = [&](auto change) {
    Filesystem resolved = written;
    change(resolved);
    const auto checked = check_paths(resolved, test_caller(), written);
    return checked ? "" : checked.error().text();
  };
  EXPECT_THAT(refusal([](auto& f) { f.workspace.path = "/etc"; }),
              HasSubstr("filesystem.workspace.path: \"/w/x\", which is \"/etc\": too broad"));
  EXPECT_THAT(refusal([](auto& f) { f.workspace.path = f.workspace.mount = "/proc/1"; }),
              HasSubstr("never a workspace"));
  EXPECT_THAT(refusal([](auto& f) {
                f.unsafe_broad_workspace = true;
                f.workspace.path = f.workspace.mount = "/tmp";
              }),
              HasSubstr("filesystem.workspace.mount: \"/w/x\", which is \"/tmp\": a workspace "
                        "there would hide the sandbox's own /tmp"));
  EXPECT_THAT(refusal([](auto& f) { f.rules[0].path = "/dev/null"; }), HasSubstr("made fresh"));
  EXPECT_THAT(refusal([](auto& f) { f.rules[1].path = "/home/user/.local/state/sandy/x"; }),
              HasSubstr("Sandy's own state"));
  EXPECT_THAT(refusal([](auto& f) { f.rules[0].path = f.rules[1].path; }),
              HasSubstr("read contradicts filesystem.deny[0]: \"/d\", which says deny"));
  EXPECT_THAT(refusal([](auto& f) { f.rules[0].path = "/w"; }),
              HasSubstr("the workspace is in it"));
  EXPECT_THAT(refusal([](auto& f) { f.rules[1].path = "/w/x"; }),
              HasSubstr("read contradicts filesystem.workspace.path"));
}

TEST(CheckFilesystem, LimitsTheRulesOfEveryDraft) {
  FilesystemDraft draft;
  for (int i = 0; i < 4097; ++i) draft.deny.push_back({"/d/" + std::to_string(i), "--deny"});
  EXPECT_THAT(check_filesystem(draft, test_caller()).error().text(),
              HasSubstr("more than 4096 rules"));
  draft.deny.pop_back();
  EXPECT_TRUE(check_filesystem(draft, test_caller()));
}

}  // namespace
}  // namespace sandy::policy
