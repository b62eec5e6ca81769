#!/usr/bin/env python3
"""A soak: sandboxes, processes, terminals, files and networks at random, while random parts are killed. Exit status 1 for any wrong output, hang or leak.

    SANDY_PROGRAMS=build/release/bin python3 tests/bench/soak.py [--minutes 30] [--workers 4] [--seed N] [--json FILE]

Workers share sandboxes with nobody, so that what one does is right or wrong by itself. A killer ends a random process below this one (the server, the proxy, bubblewrap, an agent, a
command) every few seconds: then an operation may raise SandboxError, and its worker makes another sandbox. Nothing else may go wrong.
"""

from __future__ import annotations

import argparse
import collections
import faulthandler
import hashlib
import json
import os
import pathlib
import random
import signal
import sys
import threading
import time
import traceback
import urllib.request

from machine import descendants, rss_kib, state_left

from sandy import Sandbox, SandboxError

HANG_SECONDS = 120.0
COMMAND_SECONDS = 20.0  # that an operation with one command takes at most
# A sandy-agent may be the supervisor of one command, or a command that is not run yet.
OURS = ("sandy", "sandy-launch", "sandy-proxy", "bwrap")


class CommandKilled:
    """When the killer last ended something that is no part of Sandy."""

    at = -1e9


command_killed = CommandKilled()


class Worker(threading.Thread):
    def __init__(self, number: int, seed: int, until: float) -> None:
        super().__init__(name=f"worker-{number}", daemon=True)
        self.random = random.Random(seed * 1000 + number)
        self.until = until
        self.done: collections.Counter[str] = collections.Counter()
        self.wrong: list[str] = []
        self.doing, self.since = "", time.monotonic()
        self.sandbox: Sandbox | None = None

    def run(self) -> None:
        operations = [self.command, self.process, self.killed_process, self.background, self.files, self.terminal, self.shell, self.published, self.denied, self.renew]
        while time.monotonic() < self.until and not self.wrong:
            operation = self.random.choice(operations)
            self.doing, self.since = operation.__name__, time.monotonic()
            try:
                operation(self.sandbox or self.renew())
                self.done[operation.__name__] += 1
            except (SandboxError, OSError) as error:
                # Killed under our hands, or its server was. OSError: of connections to a port that a sandbox published.
                self.done[f"{operation.__name__} was cut off"] += 1
                if self.sandbox is not None and self.alive(self.sandbox):
                    # Of a command that lives on in its sandbox's life, such as a shell, the killer may have chosen the command alone.
                    if time.monotonic() - command_killed.at > COMMAND_SECONDS:
                        self.wrong.append(f"{operation.__name__}: {error!r}, but the sandbox lives")
                    continue
                self.sandbox = None
            except BaseException:  # noqa: BLE001 - of a worker, anything is a finding
                self.wrong.append(f"{operation.__name__}: {traceback.format_exc()}")
        self.doing = ""
        if self.sandbox is not None:
            self.sandbox.close()

    @staticmethod
    def alive(sandbox: Sandbox) -> bool:
        # A kill that has just hit takes a moment to be known.
        time.sleep(1)
        try:
            return sandbox.run("true").exit_code == 0
        except SandboxError:
            return False

    def check(self, right: bool, what: object) -> None:
        if not right:
            raise AssertionError(what)

    def renew(self, _: Sandbox | None = None) -> Sandbox:
        if self.sandbox is not None:
            self.sandbox.close()
            self.sandbox = None
        self.sandbox = Sandbox(allow_domains=["x.example"], publish=["8000"]) if self.random.random() < 0.4 else Sandbox()
        return self.sandbox

    def command(self, sandbox: Sandbox) -> None:
        count = self.random.choice([0, 1, 100, 20_000, 200_000])
        outcome = sandbox.run(["seq", str(count)], max_output_bytes=8 << 20)
        if self.was_killed(outcome.signal):
            return
        self.check(outcome.stdout == b"".join(b"%d\n" % i for i in range(1, count + 1)), outcome.reason)

    @staticmethod
    def was_killed(number: int | None) -> bool:
        return number == signal.SIGKILL  # the killer's

    def process(self, sandbox: Sandbox) -> None:
        count = self.random.randrange(1, 50_000)
        with sandbox.spawn(f"cat; seq {count}", stdin=b"first\n" * 1000) as process:
            got = b"".join(process)
            outcome = process.wait(60)
            if self.was_killed(outcome.signal) or outcome.exit_code == 128 + signal.SIGKILL:
                return
            right = b"first\n" * 1000 + b"".join(b"%d\n" % i for i in range(1, count + 1))
            # cat may have been the killer's choice.
            self.check(got == right or b"Killed" in got, (len(got), len(right), outcome))

    def killed_process(self, sandbox: Sandbox) -> None:
        mark = self.random.randrange(100_000, 1_000_000)
        with sandbox.spawn(f"trap '' TERM; (setsid sleep 600.{mark} &); while :; do echo line; done") as process:
            pieces = iter(process)
            for _ in range(self.random.randrange(5)):
                self.check(set(next(pieces, b"line\n")) <= set(b"lineKilld\n"), "other bytes")
            process.kill()
            outcome = process.wait(60)
            self.check(outcome.reason == "cancelled" or self.was_killed(outcome.signal), outcome)
        if outcome.reason != "cancelled":
            return  # the killer's: what it had started goes on, as of every process that ends by itself
        left = sandbox.run(f"ps -e -o args= | grep -c '[s]leep 600.{mark}'")
        self.check(left.stdout == b"0\n" or self.was_killed(left.signal), left)

    def background(self, sandbox: Sandbox) -> None:
        with sandbox.spawn("seq 1000; sleep 0.2; echo end") as process:
            number = process.number
        again = sandbox.process(number)
        outcome = again.wait(60)
        log = sandbox.read_log(number)
        if not self.was_killed(outcome.signal) and outcome.exit_code == 0:
            right = b"".join(b"%d\n" % i for i in range(1, 1001)) + b"end\n"
            self.check(log.data.replace(b"Killed\n", b"") == right, log.data[-100:])  # its sleep may have been the killer's choice

    def files(self, sandbox: Sandbox) -> None:
        data = self.random.randbytes(self.random.choice([0, 1, 1000, 300_000, 3_000_000]))
        path = pathlib.Path(f"/tmp/soak-{os.getpid()}-{self.name}")
        path.write_bytes(data)
        try:
            sandbox.upload(str(path), "/a/b/data")
            outcome = sandbox.run("sha256sum < /workspace/a/b/data")
            if not self.was_killed(outcome.signal) and outcome.exit_code == 0:
                self.check(outcome.stdout.split()[0].decode() == hashlib.sha256(data).hexdigest(), outcome)
            sandbox.download("/a/b/data", str(path))
            self.check(path.read_bytes() == data, "downloaded bytes")
        finally:
            path.unlink()

    def terminal(self, sandbox: Sandbox) -> None:
        with sandbox.spawn("stty -echo; echo ready; read word; echo got $word; stty size", pty=(31, 91)) as process:
            got = b""
            for piece in process:
                got += piece
                if b"ready" in got:
                    break
            process.resize(40, 100)
            process.write(b"typed\r")
            got += b"".join(process)
            outcome = process.wait(60)
            if outcome.exit_code == 0 and b"Killed" not in got:
                self.check(b"got typed" in got and b"40 100" in got, got)

    def shell(self, sandbox: Sandbox) -> None:
        with sandbox.shell() as shell:
            number = self.random.randrange(1_000_000)
            shell.run(f"x={number}; mkdir -p /tmp/d$x; cd /tmp/d$x")
            outcome = shell.run("echo $x; pwd")
            if outcome.exit_code == 0:
                self.check(outcome.stdout == b"%d\n/tmp/d%d\n" % (number, number), outcome)

    def published(self, sandbox: Sandbox) -> None:
        if 8000 not in sandbox.published:
            return
        with sandbox.spawn("cd /tmp && echo served > page && exec python3 -m http.server 8000") as process:
            url = f"http://127.0.0.1:{sandbox.published[8000]}/page"
            for _ in range(200):
                try:
                    with urllib.request.urlopen(url, timeout=20) as answer:
                        self.check(answer.read() == b"served\n", "another page")
                    break
                except OSError:
                    if process.poll() is not None:
                        break
                    time.sleep(0.05)
            process.kill()
            process.wait(60)

    def denied(self, sandbox: Sandbox) -> None:
        outcome = sandbox.run(["python3", "-c", "import socket; socket.create_connection(('other.example', 80), 5)"])
        self.check(outcome.exit_code != 0, outcome)


def kill_at_random(chooser: random.Random, until: float, kills: collections.Counter[str]) -> None:
    while time.monotonic() < until:
        time.sleep(chooser.uniform(0.5, 4))
        below = descendants(os.getpid())
        if not below:
            continue
        victim = chooser.choice(below)
        try:
            name = pathlib.Path(f"/proc/{victim}/comm").read_text().strip()
            if name not in OURS:
                command_killed.at = time.monotonic()
            os.kill(victim, signal.SIGKILL)
        except OSError:
            continue  # gone, or not ours to kill
        kills[name] += 1


def open_descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def main() -> int:  # noqa: PLR0915 - a list of checks
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    faulthandler.enable()
    print("seed", options.seed, flush=True)
    with Sandbox() as first:
        first.run("true")
    before = {"descriptors": open_descriptors(), "rss_kib": rss_kib(os.getpid()) or 0, "threads": threading.active_count()}
    mounts = set(pathlib.Path("/proc/self/mountinfo").read_text().splitlines())
    until = time.monotonic() + options.minutes * 60
    kills: collections.Counter[str] = collections.Counter()
    workers = [Worker(number, options.seed, until) for number in range(options.workers)]
    killer = threading.Thread(target=kill_at_random, args=(random.Random(options.seed), until, kills), daemon=True)
    for thread in (*workers, killer):
        thread.start()
    wrong: list[str] = []
    told = time.monotonic()
    while any(worker.is_alive() for worker in workers) and not wrong:
        time.sleep(0.5)
        for worker in workers:
            wrong += worker.wrong
            if worker.is_alive() and worker.doing and time.monotonic() - worker.since > HANG_SECONDS:
                faulthandler.dump_traceback(all_threads=True)
                wrong.append(f"{worker.name} hangs in {worker.doing}")
        if time.monotonic() - told > 60:
            told = time.monotonic()
            total = sum((worker.done for worker in workers), collections.Counter())
            print(f"{sum(total.values())} operations, {sum(kills.values())} kills, RSS {rss_kib(os.getpid())} KiB, {open_descriptors()} descriptors", flush=True)
    killer.join(10)
    total = sum((worker.done for worker in workers), collections.Counter())
    if not wrong:
        # What a killed server left, the next start cleans. (The last kill may have been the server's, a moment ago.)
        time.sleep(1)
        with Sandbox() as last:
            last.run("true")
        deadline = time.monotonic() + 20
        while len(descendants(os.getpid())) > 1 and time.monotonic() < deadline:
            time.sleep(0.1)
        names = [pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode() for pid in descendants(os.getpid())]
        if extra := [name for name in names if "sandy serve" not in name and "sandy-proxy" not in name]:
            wrong.append(f"processes left: {extra}")
        if left := state_left():
            wrong.append(f"{left} state directories left")
        if new := sorted(set(pathlib.Path("/proc/self/mountinfo").read_text().splitlines()) - mounts):
            wrong.append(f"mounts that are new (others' too): {new}")
        if (threads := threading.active_count()) > before["threads"] + 1:
            wrong.append(f"threads: {before['threads']} before, {threads} after")
        if (now := open_descriptors()) > before["descriptors"] + 40:  # idle connections are kept, at most 32
            wrong.append(f"descriptors: {before['descriptors']} before, {now} after")
    result = {
        "seed": options.seed, "minutes": options.minutes, "operations": dict(total), "kills": dict(kills), "wrong": wrong,
        "before": before, "after": {"descriptors": open_descriptors(), "rss_kib": rss_kib(os.getpid()), "threads": threading.active_count()},
    }
    print(json.dumps(result, indent=2), flush=True)
    if options.json:
        options.json.write_text(json.dumps(result, indent=2) + "\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
