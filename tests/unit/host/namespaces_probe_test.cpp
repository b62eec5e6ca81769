#include "host/namespaces_probe.h"

#include <errno.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace sandy::host {
namespace {

using testing::HasSubstr;
using testing::Not;
using State = UserNamespaceState;

TEST(Remedy, EveryCauseHasItsOwnReasonAndFix) {
  std::set<std::string> reasons, remedies;
  const std::pair<State, const char*> kCauses[] = {
      {State::unmapped_user, ""},   {State::no_proc, ""},        {State::none_in_kernel, "user"},
      {State::sysctl_max, "user.max_user_namespaces"}, {State::sysctl_clone, ""}, {State::apparmor, ""},
      {State::apparmor_profile, "docker-default"},     {State::container_seccomp, ""}, {State::chroot, ""}, {State::refused, ""}};
  for (const auto& [state, subject] : kCauses) {
    const UserNamespaceProbe probe{.state = state, .error_number = EPERM, .step = "making a user namespace", .subject = subject, .covered = {}};
    EXPECT_THAT(describe(probe), HasSubstr("making a user namespace failed (Operation not permitted)"));
    EXPECT_FALSE(remedy(probe).empty());
    reasons.insert(describe(probe));
    remedies.insert(remedy(probe));
    for (const char* too_much : {"--privileged", "apparmor=unconfined", "seccomp=unconfined", "restrict_unprivileged_userns=0"}) {
      EXPECT_THAT(remedy(probe), Not(HasSubstr(too_much)));
    }
  }
  EXPECT_EQ(reasons.size(), std::size(kCauses));
  EXPECT_GE(remedies.size(), std::size(kCauses));
}

TEST(Remedy, NamesTheLimit) {
  const UserNamespaceProbe probe{.state = State::sysctl_max, .error_number = ENOSPC, .step = "making a network namespace", .subject = "user.max_net_namespaces", .covered = {}};
  EXPECT_THAT(describe(probe), HasSubstr("user.max_net_namespaces"));
  EXPECT_THAT(remedy(probe), HasSubstr("sudo sysctl -w user.max_net_namespaces=15000"));
}

TEST(Remedy, CoveredProcIsNamed) {
  const UserNamespaceProbe probe{.state = State::works, .error_number = EPERM, .step = "mounting a fresh /proc", .subject = {}, .proc_masked = true, .covered = "/proc/sys, /proc/kcore"};
  EXPECT_THAT(describe(probe), HasSubstr("/proc/sys, /proc/kcore"));
  EXPECT_THAT(remedy(probe), HasSubstr("umount /proc/sys"));
}

TEST(Probe, EndsWithAReasonOrWorks) {
  const auto probe = probe_user_namespace();
  EXPECT_FALSE(describe(probe).empty());
  EXPECT_EQ(remedy(probe).empty(), probe.state == State::works && !probe.proc_masked);
}

}  // namespace
}  // namespace sandy::host
