"""What many sandboxes with limits leave behind: no scope, no control group, no unit that failed; whatever ended them.

SANDY_LIMITED_SANDBOXES (20) and SANDY_LIMITED_KILLS (3) say how many.
"""

from __future__ import annotations

import os
import pathlib
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import pytest
from limits_support import cgroups, client, left_behind, wait_until_gone  # noqa: F401
from support import REPOSITORY, USUAL_PATH, Cli, processes_with

MANY = int(os.environ.get("SANDY_LIMITED_SANDBOXES", "20"))
KILLS = int(os.environ.get("SANDY_LIMITED_KILLS", "3"))


def failed_units() -> str:
    return subprocess.run(["systemctl", "--user", "list-units", "--all", "--failed", "--plain", "--no-legend"], capture_output=True, text=True, check=True).stdout


def test_many_sandboxes(client: Callable[..., Any]) -> None:
    # In fours, as one at a time is the easy case; every fifth command is killed for want of memory, and some leave processes.
    before = failed_units()
    script = f"""
seen, codes, errors = [], [], []
def one(number):
    # A service manager that is late is refused after 2 s, which an emulated one can be; whatever that leaves is looked for below as well.
    for turn in range(5):
        try: return use(number)
        except SandboxStartError as error: late = str(error)
        if "did not answer within" not in late: break
    errors.append(late)
def use(number):
    with Sandbox(memory="64M", pids=40, timeout=60) as box:
        code = box.run(["python3", "-c", "bytearray(200 << 20)"] if number % 5 == 4 else "sleep 300 & exit 3").exit_code
        codes.append(code)
        # (pathlib's rglob() ends early where a directory goes away under it, as those of others do.)
        seen.extend(where for where, names, _ in os.walk("/sys/fs/cgroup/user.slice") if f"sandy-{{box.id}}.scope" in names)
for first in range(0, {MANY}, 4):
    threads = [threading.Thread(target=one, args=(number,)) for number in range(first, min(first + 4, {MANY}))]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
show([len(seen), codes.count(3), codes.count(137), errors[:3]])
"""
    seen, ended, killed, errors = client(script, timeout=60 + 10 * MANY)
    assert errors == []
    assert seen == MANY, "the control: each had its scope"
    assert killed == MANY // 5 and ended == MANY - killed
    wait_until_gone()
    assert failed_units() == before


STARTER = """
import sys, threading
from sandy import *
def one(number):
    while True:
        with Sandbox(memory="64M", pids=40) as box:
            print("up", flush=True)
            box.run("sleep 5{} & sleep 0.2; exit 3", timeout=60)
for number in range(3): threading.Thread(target=one, args=(number,), daemon=True).start()
threading.Event().wait()
"""


@pytest.mark.parametrize("turn", range(KILLS))
def test_a_server_that_is_killed_in_the_midst(programs: pathlib.Path, home: pathlib.Path, tmp_path: pathlib.Path, turn: int) -> None:
    # Three at a time start, run and close all the while: a kill meets any of that.
    mark = f"{os.getpid():06}{turn:03}"
    before = failed_units()
    env = {"HOME": str(home), "PATH": USUAL_PATH, "SANDY_PROGRAMS": str(programs), "PYTHONPATH": str(REPOSITORY / "python/src")}
    env |= {name: os.environ[name] for name in ("XDG_RUNTIME_DIR",) if name in os.environ}
    with (tmp_path / "said").open("wb") as said:
        client = subprocess.Popen([sys.executable, "-c", STARTER.replace("{}", mark)], env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=said, cwd=tmp_path)
    assert client.stdout is not None
    try:
        for _ in range(4 + turn % 3):
            assert client.stdout.readline() == b"up\n", (tmp_path / "said").read_text()
        time.sleep(0.13 * (turn % 8))
        assert left_behind(), "the control: there are scopes now"
        servers = pathlib.Path(f"/proc/{client.pid}/task/{client.pid}/children").read_text().split()
        servers += [pid for task in pathlib.Path(f"/proc/{client.pid}/task").iterdir() for pid in (task / "children").read_text().split()]
        assert servers
        for pid in {int(pid) for pid in servers}:
            os.kill(pid, signal.SIGKILL)
    finally:
        client.kill()
        client.wait()
    wait_until_gone()
    assert failed_units() == before and processes_with("5" + mark) == []


def test_starts_that_are_given_up(sandy: Cli) -> None:
    # The scope is asked for before it is known whether there is anything to start. At all times of that, as it is short.
    for turn in range(8):
        got = sandy.sh("true", "--memory", "64M", "--read", f"/nonexistent/{turn}")
        assert got.status == 125 and "/nonexistent" in got.error, got
    wait_until_gone()
