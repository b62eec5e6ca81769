#!/usr/bin/env python3
"""Many sandboxes: created one after another some at a time, and alive at once. Prints what they take, and what is left afterwards.

    SANDY_PROGRAMS=build/release/bin python3 tests/bench/many.py [--create 1000] [--at-a-time 32] [--alive 300] [--json FILE]
"""

from __future__ import annotations

import argparse
import concurrent.futures
import json
import os
import pathlib
import sys
import time

from machine import children, descendants, pss_kib, state_left

from sandy import Sandbox


def create(count: int, at_a_time: int) -> dict[str, float]:
    """`count` sandboxes, a command in each, closed."""

    def one(number: int) -> None:
        with Sandbox() as sandbox:
            outcome = sandbox.run(["echo", str(number)])
            if outcome.stdout != f"{number}\n".encode():
                raise SystemExit(f"sandbox {number}: {outcome}")

    start = time.perf_counter()
    with concurrent.futures.ThreadPoolExecutor(at_a_time) as pool:
        list(pool.map(one, range(count)))
    taken = time.perf_counter() - start
    return {"sandboxes": count, "at_a_time": at_a_time, "seconds": taken, "per_second": count / taken}


def alive(count: int) -> dict[str, float]:
    """`count` sandboxes with a network at once."""
    start = time.perf_counter()
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        sandboxes = list(pool.map(lambda _: Sandbox(allow_domains=["x.example"]), range(count)))
    taken = time.perf_counter() - start
    for number, sandbox in enumerate(sandboxes):
        if sandbox.run(["echo", str(number)]).stdout != f"{number}\n".encode():
            raise SystemExit(f"sandbox {number} gave another's output")
    time.sleep(6)  # what is idle gives pages back after 5 s (src/session/wire/quiet.h)
    processes = descendants(os.getpid())
    total, unread = 0, 0
    for pid in processes:
        size = pss_kib(pid)
        total += size or 0
        unread += size is None
    # An agent can't be looked at by its own user (it is not dumpable): its resident pages, shared ones and all, stand for it.
    agents = sum(int(pathlib.Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4 for pid in processes if pss_kib(pid) is None)
    serve = children(os.getpid())
    figures = {
        "alive": count,
        "start_seconds": taken,
        "processes": len(processes),
        "pss_mib_each": (total + agents) / 1024 / count,
        "of_it_agents_rss_mib_each": agents / 1024 / count,
        "unreadable_processes": unread,
        "serve_descriptors": sum(len(os.listdir(f"/proc/{pid}/fd")) for pid in serve),
        "client_descriptors": len(os.listdir("/proc/self/fd")),
    }
    start = time.perf_counter()
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda sandbox: sandbox.close(), sandboxes))
    return figures | {"close_seconds": time.perf_counter() - start}


def left() -> dict[str, object]:
    """What is there that should not be: of processes none but the server and its proxy."""
    deadline = time.monotonic() + 10
    while len(descendants(os.getpid())) > 2 and time.monotonic() < deadline:
        time.sleep(0.05)
    return {
        "processes_beside_server_and_proxy": max(0, len(descendants(os.getpid())) - 2),
        "state_directories": state_left(),
        "serve_descriptors": sum(len(os.listdir(f"/proc/{pid}/fd")) for pid in children(os.getpid())),
        "mounts": len(pathlib.Path("/proc/self/mountinfo").read_text().splitlines()),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--create", type=int, default=1000)
    parser.add_argument("--at-a-time", type=int, default=32)
    parser.add_argument("--alive", type=int, default=300)
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    with Sandbox() as first:
        first.run("true")
    results: dict[str, object] = {"before": left()}
    print("before", results["before"], flush=True)
    if options.create:
        results["created"] = create(options.create, options.at_a_time)
        print("created", results["created"], flush=True)
        results["after_created"] = left()
        print("after", results["after_created"], flush=True)
    if options.alive:
        results["alive"] = alive(options.alive)
        print("alive", results["alive"], flush=True)
        results["after_alive"] = left()
        print("after", results["after_alive"], flush=True)
    if options.json:
        options.json.write_text(json.dumps(results, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
