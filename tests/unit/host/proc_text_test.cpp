#include "host/proc_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sandy::host {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(SocketNames, AbsoluteOnesWithAnyBytes) {
  const std::string table =
      "Num       RefCount Protocol Flags    Type St Inode Path\n"
      "00000000fe2901e6: 00000003 00000000 00000000 0001 03 539315 /tmp/x/a b\n"
      "0000000005ea7502: 00000003 00000000 00000000 0001 03 539314\n"
      "00000000e3996153: 00000003 00000000 00000000 0001 03  1678\n"
      "ffff8881035eef8ba: 00000002 00000000 00010000 0001 01 539313 @abstract\n"
      "0000000035eef8ba: 00000002 00000000 00010000 0001 01 539313 relative\n"
      "goes on\n"
      "0000000049c6c25b: 00000002 00000000 00010000 0001 01     7 /tmp/x/new\nline\n"
      "00000000fb700b04: 00000002 00000000 00010000 0001 01 539308 /tmp/x/\n\n"
      "00000000adc6395d: 00000002 00000000 00010000 0001 01 539305 /tmp/x/bad\xff\xfe\n"
      "000000002c2c94d8: 00000002 00000000 00000000 0002 01 539309 /tmp/x/ \n"
      "00000000dc050fb9: 00000002 00000000 00010000 0005 01 539303 /tmp/x/a b\n";
  EXPECT_EQ(socket_names(table), (std::vector<std::string>{"/tmp/x/\n", "/tmp/x/ ", "/tmp/x/a b", "/tmp/x/bad\xff\xfe", "/tmp/x/new\nline"}));
  // Without the last newline.
  EXPECT_EQ(socket_names("0: 0 0 0 1 1 7 /tmp/x/a b"), std::vector<std::string>{"/tmp/x/a b"});
  for (const char* nothing : {"", "\n", "\n\n", "x", ": : : :", "a: 1 2 3 4 5 6", "Num       RefCount Protocol Flags    Type St Inode Path\n/a\n"}) {
    EXPECT_TRUE(socket_names(nothing).empty()) << nothing;
  }
}

TEST(FindVersion, ReadsWhatProgramsPrint) {
  EXPECT_EQ(find_version("bubblewrap 0.8.0\n"), (Version{0, 8, 0}));
  EXPECT_EQ(find_version("bubblewrap 0.11.1"), (Version{0, 11, 1}));
  EXPECT_EQ(find_version("6.1.0-18-amd64"), (Version{6, 1, 0}));
  EXPECT_EQ(find_version("5.10"), (Version{5, 10, 0}));
  EXPECT_EQ(find_version("6.6.87.2-microsoft-standard-WSL2"), (Version{6, 6, 87}));
  EXPECT_EQ(find_version("v2 of x 1.2-rc3"), (Version{1, 2, 0}));
  EXPECT_EQ(find_version("0.12."), (Version{0, 12, 0}));
}

TEST(FindVersion, RefusesTextsWithoutOne) {
  EXPECT_FALSE(find_version(""));
  EXPECT_FALSE(find_version("bubblewrap"));
  EXPECT_FALSE(find_version("7"));
  EXPECT_FALSE(find_version("99999999999999999999.1 is no number"));
}

TEST(MapsId, LooksInEveryRange) {
  EXPECT_TRUE(maps_id("         0          0 4294967295\n", 65534));
  EXPECT_FALSE(maps_id("         0       1001          1\n", 65534));
  EXPECT_TRUE(maps_id("0 1001 1\n1 100000 65536\n", 65534));
  EXPECT_FALSE(maps_id("0 1001 1\n1 100000 65533\n", 65534));
  EXPECT_TRUE(maps_id("65534 5 1", 65534));
  EXPECT_FALSE(maps_id("", 0));
  EXPECT_FALSE(maps_id("x y z\n", 0));
}

TEST(HasCapability, ReadsTheEffectiveOnes) {
  const char* status = "Name:\tsh\nCapPrm:\t0000000000000000\nCapEff:\t0000000000200001\nCapBnd:\t000001ffffffffff\n";
  EXPECT_TRUE(has_capability(status, 21));
  EXPECT_TRUE(has_capability(status, 0));
  EXPECT_FALSE(has_capability(status, 1));
  EXPECT_FALSE(has_capability(status, 200));
  EXPECT_FALSE(has_capability("CapEff:\tnonsense\n", 0));
  EXPECT_FALSE(has_capability("", 21));
}

constexpr const char* kMountinfo =
    "25 1 254:1 / / rw,relatime shared:1 - ext4 /dev/root rw\n"
    "26 25 0:5 / /proc rw,nosuid shared:2 - proc proc rw\n"
    "27 26 0:30 / /proc/sys ro - tmpfs none rw\n"
    "28 26 0:31 / /proc/sys ro - tmpfs none rw\n"
    "29 25 0:32 / /procession rw - tmpfs none rw\n"
    "30 26 0:5 /kcore /proc/kcore rw - tmpfs none rw\n";

TEST(KernelMounts, AreKnownByTheirTypeWhereverTheyAre) {
  EXPECT_THAT(kernel_mounts(kMountinfo), ElementsAre("/proc"));
  EXPECT_THAT(kernel_mounts("1 0 0:5 / /srv/a\\040b\\134c rw shared:1 master:2 - proc none rw\n"
                            "2 0 0:6 / /sys ro - sysfs sysfs rw\n"
                            "3 0 0:6 /x /sys ro - sysfs sysfs rw\n"
                            "4 0 0:7 / /srv/proc rw - tmpfs proc rw\n"
                            "5 0 0:8 / /srv/end\\04 rw - cgroup2 none rw"),
              ElementsAre("/srv/a b\\c", "/sys", "/srv/end\\04"));
  EXPECT_THAT(kernel_mounts("1 0 0:5 / /x rw proc proc\n\n - proc\nbroken"), IsEmpty());
  EXPECT_THAT(kernel_mounts(""), IsEmpty());
}

TEST(MountsBelow, NamesEachOnceAndNoNeighbours) {
  EXPECT_THAT(mounts_below(kMountinfo, "/proc"), ElementsAre("/proc/sys", "/proc/kcore"));
  EXPECT_THAT(mounts_below(kMountinfo, "/sys"), IsEmpty());
  EXPECT_THAT(mounts_below("", "/proc"), IsEmpty());
  EXPECT_THAT(mounts_below("broken\n\n", "/proc"), IsEmpty());
}

TEST(HasRootMount, TellsAPlainDirectoryFromARoot) {
  EXPECT_TRUE(has_root_mount(kMountinfo));
  EXPECT_FALSE(has_root_mount("26 25 0:5 / /proc rw - proc proc rw\n"));
  EXPECT_FALSE(has_root_mount(""));
}

// B126: texts of /proc/version.
TEST(WslGeneration, TellsTheTwoFromLinux) {
  EXPECT_EQ(wsl_generation("Linux version 5.15.167.4-microsoft-standard-WSL2 (root@f9c826d3017f) (gcc (GCC) 11.2.0) #1 SMP"), 2);
  EXPECT_EQ(wsl_generation("Linux version 4.19.128-microsoft-standard (oe-user@oe-host) #1 SMP"), 2);
  EXPECT_EQ(wsl_generation("Linux version 6.6.1-custom-WSL2+ (me@here) #1 SMP"), 2);
  EXPECT_EQ(wsl_generation("Linux version 4.4.0-19041-Microsoft (Microsoft@Microsoft.com) (gcc version 5.4.0) #1237-Microsoft"), 1);
  EXPECT_EQ(wsl_generation("Linux version 6.1.0-18-amd64 (debian-kernel@lists.debian.org) #1 SMP PREEMPT_DYNAMIC Debian"), 0);
  EXPECT_EQ(wsl_generation(""), 0);
}

// B139: the entry of Windows' programs in binfmt_misc.
TEST(WslInterop, IsOnWhereTheEntryIsEnabled) {
  EXPECT_TRUE(wsl_interop_enabled("enabled\ninterpreter /init\nflags: PF\noffset 0\nmagic 4d5a\n"));
  EXPECT_FALSE(wsl_interop_enabled("disabled\ninterpreter /init\n"));
  EXPECT_FALSE(wsl_interop_enabled(""));
}

TEST(ApparmorProfile, IsEmptyWhereNothingIsConfined) {
  EXPECT_EQ(apparmor_profile("docker-default (enforce)\n"), "docker-default");
  EXPECT_EQ(apparmor_profile("bwrap//&unpriv (complain)"), "bwrap//&unpriv");
  EXPECT_EQ(apparmor_profile("unconfined\n"), "");
  EXPECT_EQ(apparmor_profile("flatpak (unconfined)\n"), "");
  EXPECT_EQ(apparmor_profile("system_u:system_r:container_t:s0:c1,c2"), "");  // SELinux
  EXPECT_EQ(apparmor_profile(""), "");
}

}  // namespace
}  // namespace sandy::host
