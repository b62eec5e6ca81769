"""Rows 46 and 47: machines that can't enforce what is asked, and bubblewraps of other kinds. The start fails, and says what is the cause."""

from __future__ import annotations

import os
import pathlib
import shutil
import stat
import subprocess
from collections.abc import Callable

import pytest
from support import Cli, Result, host, need

Stub = Callable[..., Result]


@pytest.fixture
def with_bwrap(sandy: Cli, open_directory: pathlib.Path) -> Stub:
    """`sandy run -- touch ran` with a shell script in bubblewrap's place; $REAL is the real one."""
    real = shutil.which("bwrap", path=sandy.env["PATH"])
    need(real, "bwrap in PATH")

    def run(script: str, *, mode: int = 0o755, timeout: float = 60) -> Result:
        stub = open_directory / "stub-bwrap"
        stub.write_text(f"#!/bin/sh\nREAL={real}\n{script}\n")
        stub.chmod(mode)
        return sandy.run("touch", "ran", env={"SANDY_BWRAP": str(stub)}, timeout=timeout)

    assert run('exec $REAL "$@"').status == 0  # the control
    (sandy.workspace / "ran").unlink()
    return run


def refused(got: Result, sandy: Cli, *words: str) -> None:
    assert got.status == 125 and got.out == b"", got
    assert not (sandy.workspace / "ran").exists()
    assert got.error.startswith("sandy: ")
    assert "Traceback" not in got.error and "{}" not in got.error and "%s" not in got.error
    for word in words:
        assert word.lower() in got.error.lower(), got.error


@pytest.mark.parametrize("option", ["--disable-userns", "--unshare-user", "--seccomp", "--args", "--ro-bind-data", "--unshare-net", "--new-session"])
def test_t47_a_bubblewrap_without_an_option(sandy: Cli, with_bwrap: Stub, option: str) -> None:
    got = with_bwrap(f'case $1 in --help) $REAL --help | grep -v -e "{option} " -e "{option}$"; exit 0;; esac; exec $REAL "$@"')
    refused(got, sandy, "bubblewrap" if option != "--unshare-user" else "bwrap")
    assert option in got.error or "is no bubblewrap" in got.error or "lacks --" in got.error


def test_t47_only_a_version(sandy: Cli, with_bwrap: Stub) -> None:
    # B116: it can say who it is, and nothing else.
    refused(with_bwrap("echo 'bubblewrap 0.12.0'; [ \"$1\" = --version ]"), sandy, "bwrap")


@pytest.mark.slow
def test_t47_one_that_hangs(sandy: Cli, with_bwrap: Stub) -> None:
    refused(with_bwrap("exec sleep 300", timeout=20), sandy, "help")


def test_t47_a_set_user_id_bubblewrap(sandy: Cli, with_bwrap: Stub) -> None:
    # Set-user-id of this same user is enough for the question; nothing else of it is.
    got = with_bwrap('case $1 in --help) exec $REAL --help;; esac; echo "bwrap: setuid use of bwrap is not supported here" >&2; exit 1', mode=0o4755)
    refused(got, sandy, "setuid", "chmod u-s")


@pytest.mark.parametrize(
    "message",
    [
        "bwrap: No permissions to create new namespace, likely because the kernel does not allow non-privileged user namespaces.",
        "bwrap: setting up uid map: Permission denied",
        "bwrap: loopback: Failed RTM_NEWADDR: Operation not permitted",
        "bwrap: Failed to make / slave: Permission denied",
        "bwrap: Can't mount proc on /newroot/proc: Operation not permitted",
        "bwrap: Creating new namespace failed: No space left on device",
    ],
)
def test_t46_what_bubblewrap_says_is_passed_on(sandy: Cli, with_bwrap: Stub, message: str) -> None:
    got = with_bwrap(f'case $1 in --help) exec $REAL --help;; esac; echo "{message}" >&2; exit 1')
    refused(got, sandy, message, "hint:")
    assert "disable" not in got.error.lower() or "apparmor" in got.error.lower()  # no advice to turn all protection off


def test_t46_no_user_namespaces(sandy: Cli) -> None:
    # In a user namespace that allows no further ones, as on a machine with the sysctl at 0.
    # Only the namespace's root may write there; it is root in one, then another user in one more, which is the last.
    script = "echo 1 > /proc/sys/user/max_user_namespaces; exec unshare --user --map-user=$0 --map-group=$0 \"$@\""
    need(host("unshare -Ur sh -c 'echo 1 > /proc/sys/user/max_user_namespaces'").status == 0, "a user namespace whose limits can be set")
    bwrap = shutil.which("bwrap", path=sandy.env["PATH"])
    got = subprocess.run(
        ["unshare", "--user", "--map-root-user", "sh", "-c", script, "1000", sandy.program, "run", "--", "touch", "ran"],
        cwd=sandy.workspace, env=sandy.env | {"SANDY_BWRAP": str(bwrap)}, capture_output=True, timeout=60, check=False,
    )
    refused(Result(got.returncode, got.stdout, got.stderr), sandy, "namespace", "max_user_namespaces")


def test_t46_a_masked_proc(sandy: Cli) -> None:
    # As in Docker: something is mounted over a part of /proc, so the kernel gives no fresh one (EPERM).
    mask = "mount -t tmpfs none /proc/sys && exec unshare --user --map-user=1000 --map-group=1000 \"$@\""
    bwrap = shutil.which("bwrap", path=sandy.env["PATH"])
    control = host("unshare -Ur --mount sh -c 'mount -t tmpfs none /proc/sys'")
    need(control.status == 0, f"a namespace in which /proc can be masked: {control.error}")
    got = subprocess.run(
        ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", mask, "sh", sandy.program, "run", "--", "touch", "ran"],
        cwd=sandy.workspace, env=sandy.env | {"SANDY_BWRAP": str(bwrap)}, capture_output=True, timeout=60, check=False,
    )
    refused(Result(got.returncode, got.stdout, got.stderr), sandy, "/proc")


# Only root's sandboxes need sandy-launch.
NEEDED = [pytest.param("sandy-agent"), pytest.param("sandy-launch", marks=pytest.mark.root)]


@pytest.mark.parametrize("missing", NEEDED)
def test_t46_a_missing_program(programs: pathlib.Path, home: pathlib.Path, ws: pathlib.Path, tmp_path: pathlib.Path, missing: str) -> None:
    directory = tmp_path / "programs"
    directory.mkdir()
    for name in {"sandy", "sandy-agent", "sandy-launch"} - {missing}:
        shutil.copy2(programs / name, directory / name)
    sandy = Cli(directory, home, ws)
    refused(sandy.run("touch", "ran"), sandy, missing, "hint:")


@pytest.mark.parametrize("program", NEEDED)
def test_t46_a_program_that_dies_at_once(programs: pathlib.Path, home: pathlib.Path, ws: pathlib.Path, tmp_path: pathlib.Path, program: str) -> None:
    directory = tmp_path / "programs"
    shutil.copytree(programs, directory)
    (directory / program).unlink()
    (directory / program).write_text("#!/bin/sh\nexit 0\n")
    (directory / program).chmod(0o755)
    sandy = Cli(directory, home, ws)
    refused(sandy.run("touch", "ran"), sandy)


def test_t46_limits_that_cannot_be_had_are_refused(sandy: Cli, tmp_path: pathlib.Path) -> None:
    # Asked for by hand and not enforced is a failed start; a default that is not enforced is said.
    outcome = tmp_path / "outcome.json"
    got = sandy.run("touch", "ran", options=["--memory", "64M", "--json", outcome])
    if got.status == 0:
        assert "limits.memory" not in outcome.read_text()
    else:
        refused(got, sandy, "memory")
    got = sandy.run("true", options=["--memory", "64M", "--best-effort", "--json", outcome]).ok()
    assert "degraded" in outcome.read_text()


def test_t03_no_network_namespace_no_sandbox(sandy: Cli) -> None:
    # Row 3: where the network can't be made, nothing runs; it never falls back to the host's, or to variables that programs may honour.
    assert sandy.run("touch", "ran", options=["--allow-domain", "example.com"]).ok()  # the control
    (sandy.workspace / "ran").unlink()
    script = "echo 0 > /proc/sys/user/max_net_namespaces; exec unshare --user --map-user=1000 --map-group=1000 \"$@\""
    bwrap = shutil.which("bwrap", path=sandy.env["PATH"])
    got = subprocess.run(
        ["unshare", "--user", "--map-root-user", "sh", "-c", script, "sh", sandy.program, "run", "--allow-domain", "example.com", "--", "touch", "ran"],
        cwd=sandy.workspace, env=sandy.env | {"SANDY_BWRAP": str(bwrap)}, capture_output=True, timeout=60, check=False,
    )
    refused(Result(got.returncode, got.stdout, got.stderr), sandy, "network namespace")


@pytest.mark.parametrize("broken", ["sandy-proxy", "sandy-launch"])
def test_t03_a_program_of_the_network_that_fails(sandy: Cli, open_directory: pathlib.Path, programs: pathlib.Path, broken: str) -> None:
    for name in ("sandy", "sandy-agent", "sandy-launch", "sandy-proxy"):
        shutil.copy(programs / name, open_directory / name)
    broken_copy = open_directory / broken
    broken_copy.unlink()
    broken_copy.write_text("#!/bin/sh\nexit 1\n")
    broken_copy.chmod(0o755)
    got = host(f"exec {open_directory}/sandy run --allow-domain example.com -- touch ran", cwd=sandy.workspace, env=sandy.env)
    refused(got, sandy)


def test_programs_have_no_set_id_bits(programs: pathlib.Path) -> None:
    for name in ("sandy", "sandy-launch", "sandy-agent", "sandy-proxy"):
        assert not os.stat(programs / name).st_mode & (stat.S_ISUID | stat.S_ISGID)
