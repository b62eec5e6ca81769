"""`SandboxPool` over sandboxes that somebody kills."""

from __future__ import annotations

import asyncio
import os
import pathlib
import signal
import time
from collections.abc import Callable

from sandy import Sandbox, SandboxPool, _process


def kill_all() -> None:
    """Kills the bubblewraps of this process's server, and with them the sandboxes."""
    parents: dict[int, list[tuple[int, str]]] = {}
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                name, rest = (entry / "stat").read_text().split("(", 1)[1].rsplit(")", 1)
            except OSError:
                continue
            parents.setdefault(int(rest.split()[1]), []).append((int(entry.name), name))
    assert _process._current is not None
    killed = [pid for pid, name in parents.get(_process._current._child.pid, []) if name == "bwrap"]
    assert killed
    for pid in killed:
        os.kill(pid, signal.SIGKILL)


def test_dead_ones_are_not_given_out(until: Callable[[Callable[[], object]], None]) -> None:
    with SandboxPool(3) as pool:
        until(lambda: pool.ready == 3)
        kill_all()
        time.sleep(0.5)
        got = [pool.get(20) for _ in range(3)]
        assert [sandbox.run("echo alive").stdout for sandbox in got] == [b"alive\n"] * 3
        for sandbox in got:
            sandbox.close()
        until(lambda: pool.ready == 3)
        kill_all()
        time.sleep(0.5)

        async def get() -> Sandbox:
            return await pool.aget(20)

        with asyncio.run(get()) as sandbox:
            assert sandbox.run("echo alive").stdout == b"alive\n"


def test_to_get_one_takes_no_time(until: Callable[[Callable[[], object]], None]) -> None:
    with SandboxPool(5) as pool:
        until(lambda: pool.ready == 5)
        took = []
        for _ in range(5):
            start = time.monotonic()
            sandbox = pool.get(20)
            took.append(time.monotonic() - start)
            sandbox.close()
            until(lambda: pool.ready == 5)
        assert min(took) < 0.001
