"""Benchmarks of processes in a sandbox: output as it comes, a terminal's echo, many commands at a time."""

from __future__ import annotations

import contextlib
import os
import pty
import statistics
import subprocess
import threading
import time
import tty
from collections.abc import Callable, Iterator

from deepagents_sandbox import Sandbox, SandboxPool

Figures = Iterator[tuple[str, dict[str, float], str]]

PIECE = 262_144  # as the sandbox's pieces of output are
TOTAL = 2 << 30


def _bare_stream() -> float:
    start = time.perf_counter()
    with subprocess.Popen(["head", "-c", str(TOTAL), "/dev/zero"], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        while os.read(process.stdout.fileno(), PIECE):
            pass
    return time.perf_counter() - start


def streaming() -> Figures:
    """What `on_output`, and iteration over a process, get in a second, and a pipe of our own."""
    with Sandbox(timeout=0) as sandbox:
        def called() -> float:
            got = 0

            def count(stream: str, data: bytes) -> None:
                nonlocal got
                got += len(data)

            start = time.perf_counter()
            sandbox.run(["head", "-c", str(TOTAL), "/dev/zero"], on_output=count)
            assert got == TOTAL
            return time.perf_counter() - start

        def iterated() -> float:
            start = time.perf_counter()
            with sandbox.spawn(["head", "-c", str(TOTAL), "/dev/zero"]) as process:
                assert sum(map(len, process)) == TOTAL
            return time.perf_counter() - start

        for name, ours in (("run(on_output=)", called), ("iteration over spawn()", iterated)):
            taken = [(_bare_stream(), ours()) for _ in range(5)]
            yield f"output by {name} / a pipe", {
                "ratio": statistics.median(bare / mine for bare, mine in taken),
                "gb_per_s": TOTAL / statistics.median(mine for _, mine in taken) / 1e9,
                "bare_gb_per_s": TOTAL / statistics.median(bare for bare, _ in taken) / 1e9,
            }, ">= 2 GB/s"


@contextlib.contextmanager
def _bare_echo() -> Iterator[Callable[[], None]]:
    master, slave = pty.openpty()
    tty.setraw(slave)
    with subprocess.Popen(["cat"], stdin=slave, stdout=slave) as process:
        def echo() -> None:
            os.write(master, b"x")
            assert os.read(master, 100) == b"x"

        yield echo
        process.kill()
    os.close(master)
    os.close(slave)


def terminal_echo() -> Figures:
    """A byte to `cat` at a raw terminal and back."""
    with _bare_echo() as bare, Sandbox() as sandbox:
        with sandbox.spawn("stty raw -echo; echo ready; cat", pty=True) as process:
            pieces = iter(process)
            while b"ready" not in next(pieces):
                pass

            def echo() -> None:
                process.write(b"x")
                assert next(pieces).endswith(b"x")

            taken = []
            for _ in range(2_000):
                start = time.perf_counter()
                bare()
                middle = time.perf_counter()
                echo()
                taken.append((middle - start, time.perf_counter() - middle))
            process.kill()
    yield "terminal's echo / bare terminal", {
        "ratio": statistics.median(mine / theirs for theirs, mine in taken),
        "ours_ms": statistics.median(mine for _, mine in taken) * 1e3,
        "other_ms": statistics.median(theirs for theirs, _ in taken) * 1e3,
        "pairs": len(taken),
    }, "<= 2"


def at_once() -> Figures:
    """Eight commands that only compute, at a time in one sandbox, and outside."""
    command = "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done"

    def eight(one: Callable[[], object]) -> float:
        threads = [threading.Thread(target=one) for _ in range(8)]
        start = time.perf_counter()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return time.perf_counter() - start

    with Sandbox() as sandbox:
        taken = [
            (eight(lambda: subprocess.run(["sh", "-c", command], check=True)), eight(lambda: sandbox.run(["sh", "-c", command])))
            for _ in range(7)
        ]
    yield "8 commands at a time, inside / outside", {
        "ratio": statistics.median(mine / theirs for theirs, mine in taken),
        "ours_ms": statistics.median(mine for _, mine in taken) * 1e3,
        "pairs": len(taken),
    }, "<= 1.1"


def pool() -> Figures:
    """A sandbox that is ready, and one that has to be started."""
    with SandboxPool(4) as ready:
        taken, started = [], []
        for _ in range(30):
            while ready.ready < 4:
                time.sleep(0.005)
            start = time.perf_counter()
            sandbox = ready.get()
            taken.append(time.perf_counter() - start)
            sandbox.close()
            start = time.perf_counter()
            with Sandbox():
                started.append(time.perf_counter() - start)
    yield "SandboxPool.get() / Sandbox()", {
        "ratio": statistics.median(mine / theirs for mine, theirs in zip(taken, started, strict=True)),
        "ours_ms": statistics.median(taken) * 1e3,
        "other_ms": statistics.median(started) * 1e3,
        "pairs": len(taken),
    }, "ours <= 1 ms"
