"""The package's AppArmor profiles, where programs without one can make no user namespaces.

Ubuntu's kernels have a sysctl for that. Debian's have not, so that a profile of the tests' stands in, which denies them as the sysctl does. Root installs
profiles and programs: `tests/run.sh --only vm` runs this in the Debian 13 guest.
"""

from __future__ import annotations

import pathlib
import shlex
import shutil
import subprocess
from collections.abc import Iterator

import pytest
from support import REPOSITORY, Result, host

pytestmark = pytest.mark.root
PROFILES = REPOSITORY / "packaging/apparmor/sandy"
LIBEXEC = pathlib.Path("/usr/libexec/sandy")
USER = "nobody"
RESTRICTED = """
abi <abi/4.0>,
include <tunables/global>
profile sandy-test-restricted flags=(attach_disconnected, mediate_deleted) {
  allow all,
  deny userns,
  allow pix /**,
}
"""


def can_be_tried() -> bool:
    mask = pathlib.Path("/sys/kernel/security/apparmor/features/namespaces/mask")
    try:
        return "userns_create" in mask.read_text() and shutil.which("apparmor_parser") is not None
    except OSError:
        return False


@pytest.fixture(scope="module", autouse=True)
def apparmor() -> None:
    # Not by need(): the machines that build have none, and what runs there in their place is tests/vm.
    if not can_be_tried():
        pytest.skip("needs an AppArmor that mediates user namespaces (Linux 6.7), and apparmor_parser: see tests/vm")


@pytest.fixture(scope="module")
def installed(apparmor: None, programs: pathlib.Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[pathlib.Path]:
    """The programs where the package has them, and the profile of a program without one."""
    assert not LIBEXEC.exists(), f"{LIBEXEC} is there: a package's?"
    shutil.copytree(programs, LIBEXEC)
    restricted = tmp_path_factory.mktemp("apparmor") / "restricted"
    restricted.write_text(RESTRICTED)
    try:
        host(f"apparmor_parser -r {restricted}").ok()
        yield restricted
    finally:
        host(f"apparmor_parser -R {restricted}; apparmor_parser -R {PROFILES}")
        shutil.rmtree(LIBEXEC)


@pytest.fixture
def profiles(installed: pathlib.Path) -> Iterator[None]:
    host(f"apparmor_parser -r {PROFILES}").ok()
    yield
    host(f"apparmor_parser -R {PROFILES}").ok()


def restricted(script: str) -> Result:
    """As a user for whom programs without a profile can make no user namespace."""
    with_home = f"mkdir -p $HOME && cd $HOME && {script}"
    return host(
        "home=$(mktemp -d) && chmod 777 $home && cd $home && "
        f"setpriv --reuid {USER} --regid nogroup --clear-groups env -i HOME=$home/h PATH=/usr/bin:/bin aa-exec -p sandy-test-restricted -- sh -c {shlex.quote(with_home)}; "
        "status=$?; rm -rf $home; exit $status",
        timeout=120,
    )


def run(options: str, script: str, program: str = "/usr/libexec/sandy/sandy") -> Result:
    return restricted(f"{program} run --private-workspace {options} -- sh -c {shlex.quote(script)}")


def test_without_the_profiles(installed: pathlib.Path) -> None:
    # The control: nobody can make one, and why is said, with a fix.
    assert "Permission denied" in restricted("unshare -U true").error
    got = run("", "echo ran")
    assert got.status == 125 and got.text == "" and "AppArmor" in got.error and "hint:" in got.error, got
    doctor = restricted("/usr/libexec/sandy/sandy doctor")
    assert doctor.status != 0 and "AppArmor profile sandy-test-restricted" in doctor.text, doctor


@pytest.mark.parametrize("options", ["", "--allow-domain example.org"], ids=["none", "network"])
def test_with_the_profiles(profiles: None, options: str) -> None:
    got = run(options, "cat /proc/self/attr/current; id -u")
    assert got.status == 0 and got.lines[0].startswith("sandy-bwrap//&sandy-inside"), got
    doctor = restricted("/usr/libexec/sandy/sandy doctor")
    assert doctor.status == 0, doctor
    # And still nobody else can.
    assert "Permission denied" in restricted("unshare -U true").error


def test_programs_at_another_place_have_none(profiles: None, programs: pathlib.Path, tmp_path: pathlib.Path) -> None:
    # Anybody can write those.
    tmp_path.chmod(0o755)
    shutil.copytree(programs, tmp_path / "bin")
    for part in [tmp_path, *tmp_path.parents][:-1]:
        part.chmod(part.stat().st_mode | 0o755)
    assert run("", "echo ran", str(tmp_path / "bin/sandy")).status == 125


def test_nobody_gets_a_namespace_to_rule_over(profiles: None) -> None:
    # By way of each program that has a profile, with options of one's own choice.
    bwrap = "/usr/bin/bwrap --unshare-all --ro-bind / / --dev /dev --proc /proc --tmpfs /tmp --cap-add ALL"
    inside = "cat /proc/self/attr/current; unshare -U true; mount -t tmpfs none /tmp; sethostname=1; hostname x; echo end"
    launch = f"/usr/libexec/sandy/sandy-launch -- {bwrap} sh -c {shlex.quote(inside)}"
    got = restricted(launch)
    assert got.lines[0].startswith("sandy-bwrap//&sandy-inside") and got.lines[-1] == "end", got
    assert got.error.count("ermission denied") + got.error.count("must be superuser") + got.error.count("must be root") >= 3, got
    # The launcher starts nothing else.
    got = restricted("/usr/libexec/sandy/sandy-launch -- /bin/sh -c 'echo ran'")
    assert got.text == "" and "ermission denied" in got.error, got
    # bubblewrap by itself has no profile.
    assert "Permission denied" in restricted(f"{bwrap} true").error
    # The control: as root, without profiles around it, the same does rule.
    control = host(f"{bwrap} sh -c {shlex.quote(inside)}")
    assert "ermission denied" not in control.error and control.lines[-1] == "end", control


def test_of_nothing_else_it_is_held_back(profiles: None) -> None:
    script = "echo 1 >/tmp/a && ln /tmp/a /tmp/b && mkfifo /tmp/f && (echo 2 >/tmp/f & cat /tmp/f) && kill -0 $$ && python3 -c 'import socket, mmap; a, b = socket.socketpair(); a.send(b\"3\"); print(b.recv(1).decode()); s = socket.socket(); s.bind((\"127.0.0.1\", 0)); mmap.mmap(-1, 4096, prot=7)'"
    assert run("", script).ok().lines == ["2", "3"]
    processes = subprocess.run(["ps", "-u", USER, "-o", "args="], capture_output=True, text=True, check=False).stdout
    assert "sandy" not in processes
