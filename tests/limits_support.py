"""What the tests of limits share: test_limits*.py, which run in the guests of `tests/vm`."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from support import REPOSITORY, USUAL_PATH, Cli, Result, finish, host, need_cgroups

MIB = 1 << 20
TOUCH = "import sys; block = bytearray(int(sys.argv[1]) << 20); block[::4096] = b'x' * len(block[::4096]); print('has it', flush=True)"


@pytest.fixture(autouse=True)
def cgroups() -> None:
    need_cgroups()


def run(sandy: Cli, *argv: str, options: tuple[object, ...] = (), timeout: float = 120) -> tuple[Result, dict[str, Any]]:
    """A command with these options, and what --json says of its end."""
    file = sandy.workspace.parent / "outcome.json"
    file.unlink(missing_ok=True)
    got = sandy.run(*argv, options=["--json", str(file), *map(str, options)], timeout=timeout)
    return got, json.loads(file.read_text()) if file.exists() else {}


@pytest.fixture
def client(programs: pathlib.Path, home: pathlib.Path, tmp_path: pathlib.Path) -> Callable[..., Any]:
    """Runs a script that has the Python client, and returns the last line that it prints, as JSON."""

    def run_script(script: str, *, env: dict[str, str] | None = None, timeout: float = 180) -> Any:
        prelude = """
import json, os, signal, sys, threading, time
from sandy import *
def show(value): print(json.dumps(value))
def left_of_a_hog(box):
    # The kernel lets a killed process die when it has freed what it held: under emulation some seconds.
    deadline = time.monotonic() + 30
    while box.stats().processes and time.monotonic() < deadline: time.sleep(0.2)
    return box.stats().processes
"""
        process = subprocess.Popen(
            [sys.executable, "-c", prelude + script], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=tmp_path,
            env={"HOME": str(home), "PATH": USUAL_PATH, "SANDY_PROGRAMS": str(programs), "PYTHONPATH": str(REPOSITORY / "python/src")}
            | {name: os.environ[name] for name in ("XDG_RUNTIME_DIR",) if name in os.environ} | (env or {}),
        )
        return json.loads(finish(process, timeout=timeout).ok().lines[-1])

    return run_script


@pytest.fixture
def on_disk() -> Iterator[pathlib.Path]:
    with tempfile.TemporaryDirectory(dir="/var/tmp") as name:
        yield pathlib.Path(name)


def left_behind() -> list[str]:
    """Scopes of Sandy's that are not gone, and control groups."""
    units = host("systemctl --user list-units --all --plain --no-legend 'sandy-*'; systemctl --user list-units --failed --plain --no-legend 'sandy-*'", env=dict(os.environ)).ok().lines
    uid = os.geteuid()
    # (os.walk() passes over what goes away under it, where pathlib's rglob() fails.)
    groups = [
        os.path.join(parent, name)
        for parent, names, _ in os.walk(f"/sys/fs/cgroup/user.slice/user-{uid}.slice")
        for name in names
        if name.startswith("sandy-") and name.endswith(".scope")
    ]
    return units + groups


def processes_below(groups: list[str]) -> list[str]:
    """For a message: what still is in those of these that are paths of control groups."""
    out = []
    for group in groups:
        for parent, _, _ in os.walk(group) if group.startswith("/") else ():
            with contextlib.suppress(OSError):  # it goes while it is looked at
                for pid in pathlib.Path(parent, "cgroup.procs").read_text().split():
                    words = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                    wchan = pathlib.Path(f"/proc/{pid}/wchan").read_text()
                    out.append(f"{os.path.basename(parent)}: {pid} {words.strip()[-120:]} ({wchan})")
    return out


def wait_until_gone() -> None:
    deadline = time.monotonic() + 20
    while (left := left_behind()) and time.monotonic() < deadline:
        time.sleep(0.2)
    assert not left, (left, processes_below(left))
