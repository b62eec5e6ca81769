#include "policy/weakening.h"

#include "policy_testing.h"

namespace sandy::policy {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// "key: sentence" for each.
std::vector<std::string> lines(std::string_view members) {
  std::vector<std::string> out;
  for (const Weakening& weakening : weakenings(valid(members))) {
    out.push_back(weakening.key + ": " + weakening.sentence);
  }
  return out;
}

TEST(Weakenings, NoneWhereNothingIsWeaker) {
  EXPECT_THAT(lines(""), IsEmpty());
  EXPECT_THAT(
      lines(
          R"("filesystem": {"deny": ["/usr/bin/curl"], "read": ["/usr/share/doc", "/lib64"]}, "seccomp": "strict",
                       "limits": {"wall_time": 60, "open_files": 64, "file_size": "1M", "tmp_size": "1M"},
                       "environment": {"set": {"CI": "1"}}, "process": {"hostname": "h", "cwd": "/workspace"})"),
      IsEmpty());
}

TEST(Weakenings, OneEach) {
  const std::vector<std::pair<const char*, std::vector<std::string>>> rows{
      {R"("filesystem": {"workspace": {"path": "."}})",
       {"filesystem.workspace.path: ", "change and delete", "/home/user/project"}},
      {R"("filesystem": {"write": ["/srv/x"]})",
       {"filesystem.write[0]: ", "change and delete what is in /srv/x"}},
      {R"("filesystem": {"read": ["~"]})", {"filesystem.read[0]: ", "read what is in /home/user"}},
      {R"("filesystem": {"read": ["/etc"]})", {"filesystem.read[0]: ", "read what is in /etc"}},
      {R"("filesystem": {"unsafe_broad_workspace": true})",
       {"filesystem.unsafe_broad_workspace: "}},
      {R"("limits": {"best_effort": true})", {"limits.best_effort: ", "left out"}},
      {R"("seccomp": {"file": "/srv/own.json"})", {"seccomp.file: ", "/srv/own.json"}},
      {R"("seccomp": {"unsafe_ptrace": true})", {"seccomp.unsafe_ptrace: ", "trace"}},
      {R"("environment": {"pass": ["TOKEN"]})", {"environment.pass: ", "TOKEN", "secret"}},
      {R"("process": {"uid": 1001})", {"process.uid: ", "1001"}},
      {R"("process": {"gid": 1001})", {"process.gid: ", "1001"}},
  };
  for (const auto& [members, words] : rows) {
    const auto found = lines(members);
    ASSERT_EQ(found.size(), 1U) << members;
    EXPECT_TRUE(found[0].starts_with(words[0])) << found[0];
    for (const std::string& word : words) EXPECT_THAT(found[0], HasSubstr(word));
  }
}

TEST(Weakenings, ARuleForASocketIsConsent) {
  const auto policy = valid(R"("filesystem": {"read": ["/srv/x", "/srv/a/../s"], "write": ["/run/t"], "deny": ["/srv/u"]})");
  std::vector<std::string> found;
  for (const Weakening& weakening : weakenings(policy, {"/srv/a/../s", "/run/t", "/srv/u"}))
    found.push_back(weakening.key + ": " + weakening.sentence);
  EXPECT_THAT(found, ElementsAre("filesystem.write[0]: commands can connect to the host's socket "
                                 "/run/t, and command the program behind it",
                                 "filesystem.read[1]: commands can connect to the host's socket "
                                 "/srv/a/../s, and command the program behind it",
                                 "filesystem.read[0]: commands can read what is in /srv/x on the host"));
}

// A mount hides those that are there.
TEST(Weakenings, DirectoriesWithSocketsSaySo) {
  for (const char* path :
       {"/run/foo", "/run", "/", "/tmp/.X11-unix", "/var/run/docker.sock", "/var"}) {
    EXPECT_THAT(lines("\"filesystem\": {\"read\": [\"" + std::string(path) + "\"]}"),
                ElementsAre(HasSubstr("read what is in"), HasSubstr("sockets that the host's programs make in")))
        << path;
  }
}

TEST(Weakenings, NameTheUsersOwnKeysInOrder) {
  PolicyDraft draft;
  draft.filesystem.write.push_back({"/srv/x", "--write"});
  draft.environment.pass.push_back({"A", "--pass-env"});
  draft.limits.best_effort = {true, "--best-effort"};
  std::vector<std::string> keys;
  for (const Weakening& weakening : weakenings(validate(draft, test_caller()).value()))
    keys.push_back(weakening.key);
  EXPECT_THAT(keys, ElementsAre("--write", "limits.best_effort", "environment.pass"));
}

TEST(Weakenings, ArePrintable) {
  const auto found = lines(
      R"("filesystem": {"read": ["/srv/\u001b[31m\n", {"bytes": "L3Nydi//"}]}, "seccomp": {"file": "/\u009b"})");
  ASSERT_EQ(found.size(), 3U);
  for (const std::string& line : found) EXPECT_EQ(printable(line), line);
}

}  // namespace
}  // namespace sandy::policy
