"""Any of our processes may be killed at any moment: nothing is left, after the next start has swept."""

from __future__ import annotations

import os
import pathlib
import random
import signal
import subprocess
import sys
import time

import pytest
from support import REPOSITORY, Cli

ROUNDS = int(os.environ.get("SANDY_KILL_ROUNDS", "300" if os.environ.get("SANDY_TEST_FULL") else "25"))
# Of each, the names that its process can have (comm in proc(5)).
VICTIMS = {"client": (), "serve": ("sandy",), "launch or bwrap": ("sandy-launch", "bwrap"), "agent": ("sandy-agent",), "proxy": ("sandy-proxy",)}

# A client under load: commands in the foreground and the background, output, file operations.
CLIENT = """
import sys, threading
from sandy import Sandbox
sandbox = Sandbox(allow_domains=["x.example"] if "network" in sys.argv else None)
def busy(number):
    for turn in range(10_000):
        sandbox.execute("(sleep 300 &) ; getent hosts x.example y.example; seq 20000 | md5sum; mkdir -p d; touch d/%d" % number)
        sandbox.upload_files([("/workspace/f%d" % number, b"x" * 200_000)])
        sandbox.grep("x", "/workspace/d")
threads = [threading.Thread(target=busy, args=(n,), daemon=True) for n in range(3)]
[t.start() for t in threads]
print("started", flush=True)
[t.join() for t in threads]
"""


def children(pid: int) -> list[int]:
    """All descendants of `pid`, parents first."""
    parents: dict[int, list[int]] = {}
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rsplit(")", 1)[1].split()
            except OSError:
                continue
            if fields[0] != "Z":
                parents.setdefault(int(fields[1]), []).append(int(entry.name))
    out: list[int] = []
    todo = [pid]
    while todo:
        below = parents.get(todo.pop(0), [])
        out += below
        todo += below
    return out


def victim(name: str, client: int) -> int | None:
    if name == "client":
        return client
    for pid in children(client):
        try:
            if pathlib.Path(f"/proc/{pid}/comm").read_text().strip() in VICTIMS[name]:
                return pid
        except OSError:
            continue
    return None


def alive(pid: int, started: str) -> bool:
    try:
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except OSError:
        return False
    return fields[0] != "Z" and fields[19] == started


def start_time(pid: int) -> str:
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[19]
    except OSError:
        return ""


def namespaces_and_mounts() -> tuple[int, str]:
    """How many mount namespaces the sandboxes' user has, and the mounts in ours."""
    user = os.geteuid() or 65534
    seen = set()
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if entry.stat().st_uid == user:
                    seen.add(os.readlink(entry / "ns/mnt"))
            except OSError:
                continue
    return len(seen), pathlib.Path("/proc/self/mountinfo").read_text()


def test_kill_anything_at_any_moment(programs: pathlib.Path, home: pathlib.Path) -> None:
    kill_in_turn(programs, home, ROUNDS)


@pytest.mark.root
def test_kill_anything_of_roots_at_any_moment(programs: pathlib.Path, home: pathlib.Path) -> None:
    kill_in_turn(programs, home, ROUNDS)


def kill_in_turn(programs: pathlib.Path, home: pathlib.Path, rounds: int) -> None:
    environment = {"PATH": os.environ["PATH"], "HOME": str(home), "SANDY_PROGRAMS": str(programs), "PYTHONDONTWRITEBYTECODE": "1",
                   "PYTHONPATH": os.pathsep.join([str(REPOSITORY / "python/src"), *filter(None, [os.environ.get("PYTHONPATH")])])}
    random.seed(os.getpid())
    state = home / ".local/state/sandy"
    before = namespaces_and_mounts()
    temporary = sorted(os.listdir("/tmp"))
    for turn in range(rounds):
        # With a network and without; where there is none, the proxy's turn kills nothing but the client.
        network = ["network"] if turn % 2 else []
        client = subprocess.Popen([sys.executable, "-c", CLIENT, *network], env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        try:
            name = list(VICTIMS)[turn % len(VICTIMS)]
            if turn % 3 != 0:  # else: while it starts
                assert client.stdout is not None
                assert client.stdout.readline() == b"started\n"
            time.sleep(random.random() * 0.3)
            processes = [(pid, start_time(pid)) for pid in children(client.pid)]
            pid = victim(name, client.pid)
            if pid is not None:
                os.kill(pid, signal.SIGKILL)
            time.sleep(random.random() * 0.05)
            processes += [(pid, start_time(pid)) for pid in children(client.pid)]
        finally:
            client.kill()
            client.wait()
        deadline = time.monotonic() + 10
        while (left := [pid for pid, started in processes if started and alive(pid, started)]) and time.monotonic() < deadline:
            time.sleep(0.02)
        assert not left, f"round {turn}, {name} killed: processes {left} are left"
    time.sleep(5)  # a directory as young as this may be one that somebody is just making
    # What a killed serve could not remove is removed by the next start of a sandbox with a directory.
    swept = subprocess.run([sys.executable, "-c", "from sandy import Sandbox\nwith Sandbox() as s: s.execute('true')"], env=environment, check=False)
    assert swept.returncode == 0
    assert [entry for entry in os.listdir(state) if entry.startswith("sandbox-")] == []
    deadline = time.monotonic() + 10  # others of this user may have sandboxes that are ending
    while (now := namespaces_and_mounts()) != before and time.monotonic() < deadline:
        time.sleep(0.1)
    assert now == before
    assert [entry for entry in os.listdir("/tmp") if entry not in temporary and "sandy" in entry and "pytest" not in entry] == []


def bubblewraps() -> list[str]:
    """Processes of ours that are bubblewrap, or still its child."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if entry.stat().st_uid == os.geteuid() and (entry / "cmdline").read_bytes().endswith(b"\0--\0/run/sandy-agent\0"):
                    found.append(entry.name)
            except OSError:
                continue
    return found


def test_both_killed_while_it_starts(sandy: Cli) -> None:
    # bubblewrap's child waits for its parent then, and nobody is left to end it: the next start does.
    others = set(bubblewraps())
    for turn in range(ROUNDS):
        process = sandy.start("run", "--", "sleep", "0.02")
        below: list[int] = []
        while process.poll() is None and not (below := children(process.pid)):
            pass
        time.sleep(random.random() * 0.006)
        for pid in (*below[:1], process.pid):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        process.wait()
        sandy.run("true").ok()
        deadline = time.monotonic() + 10
        while (left := set(bubblewraps()) - others) and time.monotonic() < deadline:
            time.sleep(0.02)
        assert not left, f"round {turn}: {left}"
        # A killed process of a loaded machine takes a while to give up its lock: the start after that sweeps.
        while list(sandy.state.glob("starting-*")) and time.monotonic() < deadline:
            sandy.run("true").ok()
        assert not list(sandy.state.glob("starting-*"))
