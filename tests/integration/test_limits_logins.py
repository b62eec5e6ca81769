"""Limits in each way to be on a machine: `su -`, cron, a login that ends, a system service; with lingering and without (case B084).

About another user of the machine, whom root makes: `tests/run.sh --only vm` runs this in the guests as root.
"""

from __future__ import annotations

import pathlib
import shlex
import subprocess
import time
from collections.abc import Iterator

import pytest
from limits_support import TOUCH, cgroups  # noqa: F401
from support import Result, host, need

pytestmark = pytest.mark.root
USER = "sandy-other"
HOG = f"python3 -c {shlex.quote(TOUCH)} 200"


class Other:
    """A user who has neither logged in nor lingers."""

    def __init__(self, program: pathlib.Path) -> None:
        self.program = program
        subprocess.run(["useradd", "--create-home", "--shell", "/bin/sh", USER], check=True)
        self.uid = int(host(f"id -u {USER}").ok().text)

    def remove(self) -> None:
        host(f"loginctl disable-linger {USER}; loginctl terminate-user {USER}")
        self.wait_until_out()
        host(f"userdel -r {USER}").ok()

    def runs(self, options: str, command: str) -> str:
        return f"{shlex.quote(str(self.program))} run --private-workspace {options} -- {command}"

    def by_su(self, script: str) -> Result:
        return host(f"su -l {USER} -c {shlex.quote(script)}", timeout=120)

    def by_cron(self, script: str) -> Result:
        """As a daemon without PAM starts things: as the user, with next to no environment, in the daemon's own group."""
        return host(f"cd / && setpriv --reuid {USER} --regid {USER} --init-groups env -i HOME=/home/{USER} PATH=/usr/bin:/bin sh -c {shlex.quote(script)}", timeout=120)

    def by_service(self, script: str, *properties: str) -> Result:
        words = " ".join(f"-p {word}" for word in (f"User={USER}", *properties))
        return host(f"systemd-run --pipe --wait -q {words} sh -c {shlex.quote(script)}", timeout=120)

    def processes(self) -> str:
        return host(f"ps -u {USER} -o pid=,args=").text

    def wait_until_out(self) -> None:
        """The user's service manager ends 10 s after the last session (logind.conf(5), UserStopDelaySec)."""
        deadline = time.monotonic() + 40
        while (self.processes() or pathlib.Path(f"/run/user/{self.uid}").exists()) and time.monotonic() < deadline:
            time.sleep(0.3)
        assert not self.processes(), self.processes()


@pytest.fixture(scope="module")
def other(programs: pathlib.Path) -> Iterator[Other]:
    need(host("command -v useradd su setpriv loginctl systemd-run").status == 0, "useradd, su, setpriv, loginctl, systemd-run")
    user = Other(programs / "sandy")
    try:
        yield user
    finally:
        user.remove()


def is_limited(got: Result) -> bool:
    return got.status == 137 and "memory limit 64 MiB" in got.error and "has it" not in got.text


def test_su(other: Other) -> None:
    # A session of logind's by PAM, which starts a service manager.
    assert is_limited(got := other.by_su(other.runs("--memory 64M", HOG))), got
    # The control.
    assert other.by_su(other.runs("--memory 256M", HOG)).ok().lines == ["has it"]


def test_su_without_what_pam_says(other: Other) -> None:
    script = f"unset XDG_RUNTIME_DIR DBUS_SESSION_BUS_ADDRESS; exec {other.runs('--memory 64M', HOG)}"
    assert is_limited(got := other.by_su(script)), got


def test_a_login_that_ends(other: Other) -> None:
    # The sandbox goes on like any job that is left behind, with its limits; and then nothing is left.
    script = f"nohup sh -c {shlex.quote(other.runs('--memory 64M', 'sh -c ' + shlex.quote('sleep 4; exec ' + HOG)) + '; echo ended $?')} >left 2>&1 </dev/null &"
    other.by_su(script).ok()
    assert "sandy run" in other.processes(), "the control: it runs on"
    left = pathlib.Path(f"/home/{USER}/left")
    deadline = time.monotonic() + 60
    while "ended" not in left.read_text() and time.monotonic() < deadline:
        time.sleep(0.3)
    assert left.read_text().splitlines()[-1] == "ended 137" and "memory limit 64 MiB" in left.read_text(), left.read_text()
    other.wait_until_out()
    assert list(pathlib.Path("/sys/fs/cgroup").rglob("sandy-*.scope")) == []


@pytest.mark.parametrize("way", ["cron", "service"])
def test_nobody_is_logged_in(other: Other, way: str) -> None:
    other.wait_until_out()
    start = other.by_cron if way == "cron" else other.by_service
    # There is no service manager of the user's. Set by hand that is an error, which says how to get one.
    got = start(other.runs("--memory 64M", "true"))
    assert got.status == 125 and "--memory" in got.error and "loginctl enable-linger" in got.error and got.text == "", got
    # The defaults are left out.
    got = start(f"cd ~; {other.runs('--json outcome.json', 'echo ran')}; grep -o limits.memory outcome.json | head -n 1")
    assert got.lines == ["ran", "limits.memory"], got
    # And what it says helps.
    host(f"loginctl enable-linger {USER}").ok()
    try:
        deadline = time.monotonic() + 30
        while not pathlib.Path(f"/run/user/{other.uid}/systemd/private").exists() and time.monotonic() < deadline:
            time.sleep(0.3)
        assert is_limited(got := start(other.runs("--memory 64M", HOG))), got
    finally:
        host(f"loginctl disable-linger {USER}").ok()


def test_a_service_with_a_delegated_group(other: Other) -> None:
    other.wait_until_out()
    assert is_limited(got := other.by_service(other.runs("--memory 64M", HOG), "Delegate=yes")), got
