#!/usr/bin/env python3
"""What limits cost: a start and a command, with control groups and without. By itself, as guests (tests/vm) have none of what the other benchmarks need:

    SANDY_PROGRAMS=$PWD/build/release/bin PYTHONPATH=python/src python3 tests/bench/limits.py

Needs control groups of one's own. Prints JSON: medians of the pairs' ratios, with ÷ without, and milliseconds; and `neighbours`: a command's time in one
sandbox while a fork bomb, a memory hog and busy loops run in three others (`busy_ms`), and while nothing does (`idle_ms`). `--only NAME` runs cold, warm or
neighbours alone.
"""

from __future__ import annotations

import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable

PROGRAM = pathlib.Path(os.environ["SANDY_PROGRAMS"]).resolve() / "sandy"
COMMANDS = (
    "import os, sys, time\nfrom sandy import Sandbox\n"
    "with Sandbox() as box:\n"
    "    print(len(box.degraded), flush=True)\n"
    "    for line in sys.stdin:\n"
    "        start = time.perf_counter(); box.run(['true']); print(time.perf_counter() - start, flush=True)\n"
)
# Commands of one sandbox, idle and with three bad neighbours in the same server.
NEIGHBOURS = (
    "import contextlib, json, statistics, threading, time\nfrom sandy import Sandbox, SandboxError\n"
    "hog = 'while True:\\n    try: held = [bytearray(8 << 20) for _ in range(100)]\\n    except MemoryError: pass'\n"
    "bombs = ['f() { f | f & }; f; sleep 60', ['sh', '-c', 'while :; do python3 -c \"$1\"; done', 'sh', hog], 'for i in 1 2 3 4; do (while :; do :; done) & done; sleep 60']\n"
    "def median(box):\n"
    "    taken = []\n"
    "    for _ in range(40):\n"
    "        start = time.perf_counter(); assert box.run(['true']).ok; taken.append(time.perf_counter() - start)\n"
    "    return statistics.median(taken) * 1e3\n"
    "def attack(box, bomb):\n"
    "    with contextlib.suppress(SandboxError): box.run(bomb)  # it is closed with that in it\n"
    "with Sandbox(timeout=600) as good:\n"
    "    for _ in range(5): good.run(['true'])\n"
    "    idle = median(good)\n"
    "    bad = [Sandbox(memory='64M', pids=40, cpus=0.5, timeout=600) for _ in bombs]\n"
    "    for box, bomb in zip(bad, bombs): threading.Thread(target=attack, args=(box, bomb), daemon=True).start()\n"
    "    time.sleep(2)\n"
    "    busy = median(good)\n"
    "    for box in bad: box.close()\n"
    "print(json.dumps({'ratio': busy / idle, 'busy_ms': busy, 'idle_ms': idle}))\n"
)


def pairs(first: Callable[[], float], second: Callable[[], float], count: int) -> dict[str, float]:
    for _ in range(3):
        first(), second()
    taken = [(first(), second()) for _ in range(count)]
    return {
        "ratio": statistics.median(a / b for a, b in taken),
        "with_ms": statistics.median(a for a, _ in taken) * 1e3,
        "without_ms": statistics.median(b for _, b in taken) * 1e3,
    }


def warm(usual: dict[str, str], without: dict[str, str]) -> dict[str, dict[str, float]]:
    clients = [subprocess.Popen([sys.executable, "-c", COMMANDS], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for env in (usual, without)]
    lacking = [int(client.stdout.readline()) for client in clients]
    if lacking[0] != 0 or lacking[1] == 0:
        sys.exit(f"this machine has no control groups for the one, or has them for the other: {lacking}")

    def command(client: subprocess.Popen[str], pause: float) -> float:
        time.sleep(pause)
        client.stdin.write("\n")
        client.stdin.flush()
        return float(client.stdout.readline())

    taken = {
        f"warm_{name}": pairs(lambda pause=pause: command(clients[0], pause), lambda pause=pause: command(clients[1], pause), count)
        for name, pause, count in (("in_a_row", 0, 200), ("with_pauses", 0.2, 40))
    }
    for client in clients:
        client.stdin.close()
        client.wait()
    return taken


def main() -> None:
    parts = sys.argv[2:] if sys.argv[1:2] == ["--only"] else ["cold", "warm", "neighbours"]
    out: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as directory:
        usual = {name: value for name, value in os.environ.items() if name not in ("XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS")} | {"HOME": directory}
        without = usual | {"XDG_RUNTIME_DIR": "/nonexistent"}  # no bus there
        for name, options in (("cold_run", []), ("cold_run_network", ["--allow-domain", "x.example"])) if "cold" in parts else ():
            def start(env: dict[str, str], options: list[str] = options) -> float:
                begin = time.perf_counter()
                subprocess.run([PROGRAM, "run", "--private-workspace", *options, "--", "true"], env=env, check=True, stdin=subprocess.DEVNULL)
                return time.perf_counter() - begin

            out[name] = pairs(lambda start=start: start(usual), lambda start=start: start(without), 30)
        if "warm" in parts:
            out |= warm(usual, without)
        if "neighbours" in parts:
            done = subprocess.run([sys.executable, "-c", NEIGHBOURS], env=usual, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, check=True)
            out["neighbours"] = json.loads(done.stdout)
    print(json.dumps(out, indent=2))


if __name__ == "__main__":
    main()
