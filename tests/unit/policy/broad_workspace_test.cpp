#include "policy/broad_workspace.h"

#include "policy_testing.h"

namespace sandy::policy {
namespace {

using testing::HasSubstr;

TEST(BroadWorkspaceReason, SaysWhy) {
  const std::vector<std::pair<const char*, const char*>> rows{
      {"/", "whole file system"},
      {"/home/user", "home directory"},
      {"/home", "home directory is in it"},
      {"/root", "shared"},
      {"/home/user/.local", "Sandy's own state is in it"},
      {"/home/user/.local/state", "Sandy's own state is in it"},
      {"/home/user/.local/state/sandy", "Sandy's own state"},
      {"/home/user/.local/state/sandy/x", "Sandy's own state"},
      {"/usr", "/usr"},
      {"/usr/local/src", "/usr"},
      {"/etc", "/etc"},
      {"/etc/cron.d", "/etc"},
      {"/bin", "/bin"},
      {"/sbin", "/sbin"},
      {"/lib", "/lib"},
      {"/lib64", "/lib64"},
      {"/boot/efi", "/boot"},
      {"/var", "is in it"},
      {"/var/lib", "is in it"},
      {"/var/tmp", "shared"},
      {"/var/spool/cron", "/var/spool"},
      {"/tmp", "shared"},
      {"/opt", "shared"},
      {"/run", "is in it"},
      {"/run/user", "shared"},
      {"/run/user/1000", "sockets of the user's session"},
      {"/run/systemd/system", "/run/systemd"},
      {"/proc", "/proc"},
      {"/proc/self", "/proc"},
      {"/sys/fs/cgroup", "/sys"},
      {"/dev", "devices"},
      {"/dev/shm", "shared"},
      {"/dev/snd", "devices"},
  };
  for (const auto& [path, words] : rows) {
    const auto reason = broad_workspace_reason(path, test_caller());
    ASSERT_TRUE(reason) << path;
    EXPECT_THAT(*reason, HasSubstr(words)) << path;
  }
}

TEST(BroadWorkspaceReason, LeavesProjectsAlone) {
  for (const char* path :
       {"/home/user/project", "/home/user/.local/share", "/home/username", "/srv/data", "/tmp/x",
        "/var/tmp/x", "/dev/shm/x", "/opt/tool", "/mnt", "/var/www/site", "/usrlocal", "/etcetera",
        "/home/user/.local/state/sandy2"}) {
    EXPECT_FALSE(broad_workspace_reason(path, test_caller())) << path;
  }
}

TEST(BroadWorkspaceReason, WithRootsHomeAndWithoutOne) {
  const Caller root{"/root/", "/root", "/root/.local/state/sandy/", 0};
  EXPECT_THAT(broad_workspace_reason("/root", root).value(), HasSubstr("home directory"));
  EXPECT_FALSE(broad_workspace_reason("/root/project", root));
  EXPECT_TRUE(broad_workspace_reason("/root/.local", root));
  const Caller none{"", "/srv", "", 65534};
  EXPECT_FALSE(broad_workspace_reason("/srv/x", none));
  EXPECT_TRUE(broad_workspace_reason("/home", none));
  EXPECT_TRUE(broad_workspace_reason("/", none));
}

}  // namespace
}  // namespace sandy::policy
