#include "verify/explain.h"

#include <gtest/gtest.h>

namespace sandy::verify {
namespace {

using policy::Access;
using policy::PolicyFields;

policy::NetworkRule rule(const char* text) { return policy::parse_network_rule(text).value(); }

TEST(ShownBy, NamesTheMostSpecificRule) {
  PolicyFields policy;
  policy.filesystem.rules = {{"/home/me", Access::write, "--write"}, {"/home/me/keys", Access::deny, "--deny"}, {"/home/me/notes", Access::read, "--read"}};
  EXPECT_EQ(shown_by(policy, {"/home/me/x"}, false), "--write /home/me");
  EXPECT_EQ(shown_by(policy, {"/home/me/x"}, true), "--write /home/me");
  EXPECT_EQ(shown_by(policy, {"/home/me/keys/x"}, false), "");
  EXPECT_EQ(shown_by(policy, {"/home/me/notes/x"}, false), "--read /home/me/notes");
  EXPECT_EQ(shown_by(policy, {"/home/me/notes/x"}, true), "");
  EXPECT_EQ(shown_by(policy, {"/home/you", "/home/me/x"}, false), "--write /home/me");
  EXPECT_EQ(shown_by(policy, {"/home/mean"}, false), "");
}

TEST(ShownBy, NamesTheRuleThatLeadsThere) {
  PolicyFields policy;
  policy.filesystem.rules = {{"/a", Access::read, "--read"}, {"/srv/very/long/link", Access::write, "--write"}};
  const std::map<std::string, std::string> targets{{"/a", "/home/me/notes"}, {"/srv/very/long/link", "/home/me"}};
  EXPECT_EQ(shown_by(policy, {"/home/me/x"}, true, targets), "--write /srv/very/long/link");
  EXPECT_EQ(shown_by(policy, {"/home/me/notes/x"}, false, targets), "--read /a");
  EXPECT_EQ(shown_by(policy, {"/home/me/notes/x"}, true, targets), "");
  EXPECT_EQ(shown_by(policy, {"/srv/very/long/link/x"}, true, targets), "");
  policy.filesystem.workspace = {policy::WorkspaceMode::bind, "/w", "/workspace", "--workspace", "--mount"};
  EXPECT_EQ(shown_by(policy, {"/data/x"}, true, {{"/w", "/data"}}), "--workspace /w");
}

TEST(ShownBy, NamesTheWorkspace) {
  PolicyFields policy;
  policy.filesystem.workspace = {policy::WorkspaceMode::bind, "/home/me", "/workspace", "--workspace", "--mount"};
  EXPECT_EQ(shown_by(policy, {"/home/me/x"}, true), "--workspace /home/me");
  policy.filesystem.rules = {{"/home/me/keys", Access::deny, "--deny"}};
  EXPECT_EQ(shown_by(policy, {"/home/me/keys/x"}, false), "");
  policy.filesystem.workspace.mode = policy::WorkspaceMode::private_;
  EXPECT_EQ(shown_by(policy, {"/home/me/x"}, true), "");
}

TEST(PermittedBy, NamesTheFilter) {
  PolicyFields policy;
  EXPECT_EQ(permitted_by(policy), "");
  policy.seccomp.unsafe_ptrace = true;
  EXPECT_EQ(permitted_by(policy), "");
  EXPECT_EQ(permitted_by(policy, true), "seccomp.unsafe_ptrace");
  policy.seccomp.base = policy::SeccompBase::file;
  policy.seccomp.file = "/etc/own.json";
  EXPECT_EQ(permitted_by(policy), "seccomp.file /etc/own.json");
}

TEST(PassedBy, NamesTheList) {
  PolicyFields policy;
  policy.environment.pass = {"TOKEN"};
  policy.environment.set["OTHER"] = "x";
  EXPECT_EQ(passed_by(policy, "TOKEN"), "environment.pass TOKEN");
  EXPECT_EQ(passed_by(policy, "OTHER"), "environment.set OTHER");
  EXPECT_EQ(passed_by(policy, "THIRD"), "");
}

TEST(ReachedBy, NamesTheRule) {
  PolicyFields policy;
  policy.network.mode = policy::NetworkMode::allowlist;
  policy.network.allow = {rule("*.example.com"), rule("8.8.8.8:443")};
  policy.network.allow_private = {rule("169.254.169.254:80")};
  EXPECT_NE(reached_by(policy, "x.example.com", 443).find("*.example.com"), std::string::npos);
  EXPECT_NE(reached_by(policy, "8.8.8.8", 443).find("8.8.8.8"), std::string::npos);
  EXPECT_NE(reached_by(policy, "169.254.169.254", 80).find("169.254.169.254"), std::string::npos);
  EXPECT_EQ(reached_by(policy, "example.org", 443), "");
  EXPECT_EQ(reached_by(policy, "8.8.8.8", 80), "");
  EXPECT_NE(resolved_by(policy, "x.example.com"), "");
  EXPECT_EQ(resolved_by(policy, "example.org"), "");
}

}  // namespace
}  // namespace sandy::verify
