#!/usr/bin/env python3
"""Benchmarks of Sandy: ratios measured side by side (README.md). Prints a table and writes JSON."""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator

import network
import processes
from deepagents.backends import FilesystemBackend
from deepagents.backends.local_shell import LocalShellBackend
from deepagents.backends.sandbox import BaseSandbox
from machine import descendants, pss_kib, rss_kib

from deepagents_sandbox import Sandbox

PROGRAMS = pathlib.Path(os.environ["SANDY_PROGRAMS"]).resolve()
QUIET_SECONDS = 5  # after which programs give their code pages back (src/session/wire/quiet.h)
BWRAP = shutil.which("bwrap") or "bwrap"

GETPPID = """
#include <sys/syscall.h>
#include <unistd.h>
#include <stdio.h>
#include <time.h>
int main(void) {
  struct timespec a, b;
  clock_gettime(CLOCK_MONOTONIC, &a);
  for (int i = 0; i < 3000000; i++) syscall(SYS_getppid);
  clock_gettime(CLOCK_MONOTONIC, &b);
  printf("%f\\n", (b.tv_sec - a.tv_sec) + (b.tv_nsec - a.tv_nsec) / 1e9);
  return 0;
}
"""


class Derived(BaseSandbox):
    """BaseSandbox's own file operations, over our execute: what a backend gets that overrides nothing."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox

    @property
    def id(self) -> str:
        return self._sandbox.id

    def execute(self, command, *, timeout=None):
        return self._sandbox.execute(command, timeout=timeout)

    def upload_files(self, files):
        return self._sandbox.upload_files(files)

    def download_files(self, paths):
        return self._sandbox.download_files(paths)


def seconds(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def pairs(ours: Callable[[], object], other: Callable[[], object], count: int) -> dict[str, float]:
    """Median of the ratios of `count` pairs, after a few that are not counted."""
    for _ in range(3):
        ours()
        other()
    taken = [(seconds(other), seconds(ours)) for _ in range(count)]
    return {
        "ratio": statistics.median(mine / theirs for theirs, mine in taken),
        "ours_ms": statistics.median(mine for _, mine in taken) * 1e3,
        "other_ms": statistics.median(theirs for theirs, _ in taken) * 1e3,
        "pairs": count,
    }


def check(response: object) -> None:
    error = getattr(response, "error", None)
    if error is not None or getattr(response, "exit_code", 0) != 0:
        raise SystemExit(f"a benchmarked operation failed: {response}")


def warm_execute() -> Iterator[tuple[str, dict[str, float], str]]:
    local = LocalShellBackend()
    with Sandbox() as sandbox:
        yield "warm execute / LocalShellBackend", pairs(
            lambda: check(sandbox.execute("true")), lambda: check(local.execute("true")), 300
        ), "<= 0.6"


def cold_run() -> Iterator[tuple[str, dict[str, float], str]]:
    bare = [BWRAP, "--unshare-all", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "true"]
    ours = [str(PROGRAMS / "sandy"), "run", "--", "true"]

    def run(argv: list[str]) -> None:
        subprocess.run(argv, check=True, stdin=subprocess.DEVNULL)

    with tempfile.TemporaryDirectory() as directory:
        os.chdir(directory)
        yield "sandy run -- true / bare bwrap", pairs(lambda: run(ours), lambda: run(bare), 60), "<= 1.5"
        os.chdir("/")


def operations(backend: object, root: str, edited: str) -> dict[str, Callable[[], object]]:
    state = {"turn": 0}

    def edit() -> None:
        old, new = ("alpha", "beta ") if state["turn"] % 2 == 0 else ("beta ", "alpha")
        state["turn"] += 1
        check(backend.edit(f"{root}/{edited}", old, new))

    return {
        "read": lambda: check(backend.read(f"{root}/small.txt")),
        "ls": lambda: check(backend.ls(root)),
        "grep": lambda: check(backend.grep("needle", root)),
        "edit": edit,
    }


def fill(write: Callable[[str, str], object], root: str) -> None:
    write(f"{root}/small.txt", "".join(f"line {i}\n" for i in range(100)) + "a needle here\n")
    for name in ("edit1.txt", "edit2.txt"):
        write(f"{root}/{name}", "one alpha two\n")
    for i in range(10):
        write(f"{root}/other{i}.txt", f"text {i}\n")


def files(derived: bool) -> Iterator[tuple[str, dict[str, float], str]]:
    with Sandbox() as sandbox, tempfile.TemporaryDirectory() as directory:
        fill(lambda path, text: check(sandbox.write(path, text)), "/workspace/d")
        local = FilesystemBackend(root_dir=directory, virtual_mode=True)
        fill(lambda path, text: check(local.write(path, text)), "/d")
        ours = operations(sandbox, "/workspace/d", "edit1.txt")
        other = (
            operations(Derived(sandbox), "/workspace/d", "edit2.txt") if derived else operations(local, "/d", "edit2.txt")
        )
        name, target, count = ("BaseSandbox over execute", "<= 0.02", 30) if derived else ("FilesystemBackend", "<= 3", 200)
        for operation, call in ours.items():
            yield f"{operation} / {name}", pairs(call, other[operation], count), target


def command_of(pid: int) -> str:
    return pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[0].decode()


def output() -> Iterator[tuple[str, dict[str, float], str]]:
    with Sandbox() as sandbox:
        check(sandbox.execute("true"))
        watched = [os.getpid(), *(pid for pid in descendants(os.getpid()) if command_of(pid).endswith("sandy"))]
        before = [rss_kib(pid) or 0 for pid in watched]
        peak = 0

        def once() -> None:
            check(sandbox.execute("yes | head -c 1G"))

        taken = [seconds(once) for _ in range(5)]
        peak = max(after - first for first, after in zip(before, (rss_kib(pid) or 0 for pid in watched), strict=True))
        bare = [seconds(lambda: subprocess.run("yes | head -c 1G >/dev/null", shell=True, check=True)) for _ in range(5)]
        yield "yes | head -c 1G through execute", {
            "gb_per_s": (1 << 30) / statistics.median(taken) / 1e9,
            "bare_to_dev_null_gb_per_s": (1 << 30) / statistics.median(bare) / 1e9,
            "largest_growth_mib": peak / 1024,
        }, ">= 1 GB/s, < 32 MiB"


def inside() -> Iterator[tuple[str, dict[str, float], str]]:
    with tempfile.TemporaryDirectory() as directory, Sandbox(workspace=directory) as sandbox:
        path = pathlib.Path(directory)
        (path / "getppid.c").write_text(GETPPID)
        subprocess.run(["cc", "-O2", "-o", path / "getppid", path / "getppid.c"], check=True)
        ratios = []
        for _ in range(15):
            bare = float(subprocess.run([path / "getppid"], check=True, capture_output=True).stdout)
            response = sandbox.execute("./getppid")
            check(response)
            ratios.append(float(response.output) / bare)
        yield "getppid loop inside / outside", {"ratio": statistics.median(ratios), "pairs": 15}, "<= 1.10"

        (path / "job.sh").write_text("for i in 1 2 3 4 5 6 7 8; do cc -O2 -o job$i getppid.c || exit 1; done\n")
        yield "compile job inside / outside", pairs(
            lambda: check(sandbox.execute("sh job.sh")),
            lambda: subprocess.run(["sh", "job.sh"], cwd=directory, check=True),
            12,
        ), "<= 1.03"


def idle_memory() -> Iterator[tuple[str, dict[str, float], str]]:
    with Sandbox() as sandbox:
        check(sandbox.execute("true"))
        time.sleep(QUIET_SECONDS + 0.5)
        running = descendants(os.getpid())
        # The agent can't be looked at by its own user (it is not dumpable): statm tells its resident pages.
        rss = sum(int(pathlib.Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4 for pid in running)
        pss = sum(pss_kib(pid) or 0 for pid in running)
        unread = sum(1 for pid in running if pss_kib(pid) is None)
        values = {f"rss_mib {pid_name}": int(pathlib.Path(f"/proc/{pid}/statm").read_text().split()[1]) / 256
                  for pid in running for pid_name in [f"{pathlib.Path(command_of(pid)).name}:{pid}"]}
        yield "idle sandbox, all processes", {
            "rss_mib": rss / 1024, "pss_mib_of_readable": pss / 1024, "processes": len(running), "unreadable": unread, **values
        }, "<= 4 MiB"


BENCHMARKS: dict[str, Callable[[], Iterator[tuple[str, dict[str, float], str]]]] = {
    "warm_execute": warm_execute,
    "cold_run": cold_run,
    "files_derived": lambda: files(derived=True),
    "files_local": lambda: files(derived=False),
    "output": output,
    "inside": inside,
    "idle_memory": idle_memory,
    "streaming": processes.streaming,
    "terminal_echo": processes.terminal_echo,
    "at_once": processes.at_once,
    "pool": processes.pool,
    "network_throughput": network.throughput,
    "network_connection": network.connection_time,
    "network_many": network.many_connections,
    "network_bad_company": network.bad_company,
    "network_start": network.network_start,
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=pathlib.Path, help="also write the figures to this file")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"some of: {', '.join(BENCHMARKS)}")
    options = parser.parse_args()
    if unknown := set(options.names) - set(BENCHMARKS):
        parser.error(f"no such benchmark: {', '.join(sorted(unknown))}")
    results = []
    load = os.getloadavg()[0]  # what else the machine does, before this
    for name in options.names or BENCHMARKS:
        for title, figures, target in BENCHMARKS[name]():
            shown = "  ".join(f"{key} {value:.3f}" if isinstance(value, float) else f"{key} {value}" for key, value in figures.items())
            print(f"{title:45} {shown}  (target {target})", flush=True)
            results.append({"benchmark": name, "title": title, "target": target, **figures})
    if options.json:
        machine = {"cores": os.cpu_count(), "kernel": f"Linux {os.uname().release}", "date": time.strftime("%Y-%m-%d"), "load": load}
        options.json.write_text(json.dumps(machine | {"results": results}, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
