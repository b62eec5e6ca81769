"""Helpers of the tests that run real sandboxes.

SANDY_PROGRAMS names the directory with sandy, sandy-launch, sandy-agent and sandy-proxy. A test that needs something this machine lacks skips
and says what; with SANDY_MUST_WORK=1 it fails, so that no skip can hide a fault.
"""

from __future__ import annotations

import dataclasses
import os
import pathlib
import subprocess
import time
from collections.abc import Callable, Sequence

import pytest

MUST_WORK = os.environ.get("SANDY_MUST_WORK") == "1"
REPOSITORY = pathlib.Path(__file__).resolve().parent.parent
USUAL_PATH = "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin"

def need(condition: object, what: str) -> None:
    """Skips the test without `condition`, or fails it where everything must work."""
    if condition:
        return
    if MUST_WORK:
        pytest.fail(f"SANDY_MUST_WORK=1, but this machine lacks: {what}")
    pytest.skip(f"needs {what}")


def have_cgroups() -> bool:
    """Whether systemd runs, with cgroup v2: then control groups of one's own must be had."""
    kind = subprocess.run(["stat", "-fc", "%T", "/sys/fs/cgroup"], capture_output=True, text=True, check=False).stdout.strip()
    return kind == "cgroup2fs" and os.path.isdir("/run/systemd/system")


def need_cgroups() -> None:
    """Skips the test without them. Not by need(): the machines that build have none, and what runs there in their place is tests/vm."""
    if not have_cgroups():
        pytest.skip("needs cgroup v2 and a systemd that runs: see tests/vm")


# Of the running test; what it leaves behind when it fails is ended after it.
started: list[subprocess.Popen[bytes]] = []


@dataclasses.dataclass(frozen=True)
class Result:
    status: int  # as a shell would say it: 128 + n for signal n
    out: bytes
    err: bytes

    @property
    def text(self) -> str:
        return self.out.decode(errors="replace")

    @property
    def error(self) -> str:
        return self.err.decode(errors="replace")

    @property
    def lines(self) -> list[str]:
        return self.text.splitlines()

    def ok(self) -> Result:
        assert self.status == 0, f"status {self.status}\n{self.text}\n{self.error}"
        return self


def finish(process: subprocess.Popen[bytes], stdin: bytes | None = None, timeout: float = 60) -> Result:
    try:
        out, err = process.communicate(stdin, timeout)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()  # not communicate(): what holds the pipes may be what is wrong
        pytest.fail(f"{process.args} did not end within {timeout} s")
    status = process.returncode
    return Result(128 - status if status < 0 else status, out or b"", err or b"")


class Cli:
    """`sandy` with a home directory and state of the test's own, in a workspace of its own."""

    def __init__(self, programs: pathlib.Path, home: pathlib.Path, workspace: pathlib.Path) -> None:
        self.programs = programs
        self.home = home
        self.workspace = workspace
        self.env = {"HOME": str(home), "PATH": USUAL_PATH}
        if "SANDY_BWRAP" in os.environ:
            self.env["SANDY_BWRAP"] = os.environ["SANDY_BWRAP"]

    @property
    def program(self) -> str:
        return str(self.programs / "sandy")

    @property
    def state(self) -> pathlib.Path:
        return self.home / ".local/state/sandy"

    def start(
        self,
        verb: str,
        *words: str | bytes | pathlib.Path,
        env: dict[str, str] | None = None,
        cwd: str | pathlib.Path | None = None,
        **popen: object,
    ) -> subprocess.Popen[bytes]:
        """A running `sandy VERB WORD...`; standard output and error are pipes, standard input is empty."""
        streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        process = subprocess.Popen(  # type: ignore[call-overload]
            [self.program, verb, *words], cwd=cwd or self.workspace, env=self.env | (env or {}), **(streams | popen)
        )
        started.append(process)
        return process  # type: ignore[no-any-return]

    def call(self, verb: str, *words: str | bytes | pathlib.Path, stdin: bytes = b"", timeout: float = 60, **popen: object) -> Result:
        if stdin:
            popen["stdin"] = subprocess.PIPE
        return finish(self.start(verb, *words, **popen), stdin or None, timeout)  # type: ignore[arg-type]

    def run(self, *argv: str | bytes | pathlib.Path, options: Sequence[str | bytes | pathlib.Path] = (), **rest: object) -> Result:
        """`sandy run OPTION... -- ARGUMENT...`."""
        return self.call("run", *options, "--", *argv, **rest)  # type: ignore[arg-type]

    def sh(self, script: str | bytes, *options: str | bytes | pathlib.Path, **rest: object) -> Result:
        """A shell script in a sandbox."""
        return self.run("sh", "-c", script, options=options, **rest)


def host(script: str, *, cwd: str | pathlib.Path | None = None, env: dict[str, str] | None = None, timeout: float = 60) -> Result:
    """The same script outside, with nothing in its way: the positive control of a refusal."""
    process = subprocess.Popen(
        ["sh", "-c", script],
        cwd=cwd,
        env={"HOME": "/nonexistent", "PATH": USUAL_PATH} | (env or {}),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    return finish(process, timeout=timeout)


def processes_with(word: str) -> list[int]:
    """Processes on this machine, in sandboxes too, that have `word` as one of their arguments."""
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                words = pathlib.Path("/proc", entry, "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if word.encode() in words:
                found.append(int(entry))
    return found


def descendants(root: int) -> list[int]:
    """The processes below `root`, nearest first."""
    children: dict[int, list[int]] = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                stat = pathlib.Path("/proc", entry, "stat").read_text(errors="replace")
            except OSError:
                continue
            children.setdefault(int(stat.rpartition(")")[2].split()[1]), []).append(int(entry))
    out: list[int] = []
    todo = [root]
    while todo:
        below = children.get(todo.pop(0), [])
        out += below
        todo += below
    return out


def program_of(pid: int) -> str:
    try:
        return pathlib.Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


def wait_until(condition: Callable[[], object], seconds: float = 5, what: str = "it") -> None:
    """Waits for what has to happen within some seconds; on a machine that has more to do than it can, up to five times as long."""
    seconds *= max(1.0, min(5.0, os.getloadavg()[0] / (os.cpu_count() or 1)))
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"{what} did not happen within {seconds} s"
        time.sleep(0.01)
