"""What became of a command, with nothing mixed: the result of `Sandbox.run`."""

from __future__ import annotations

import signal as signals
from dataclasses import dataclass
from typing import Literal

Reason = Literal["exited", "signalled", "timed_out", "cancelled", "could_not_start", "out_of_memory", "sandbox_gone"]

TIMED_OUT = 124
SANDBOX_FAILED = 125


@dataclass(frozen=True, slots=True)
class Denial:
    """A connection or a lookup that the sandbox's network refused, or that did not reach what it may reach.

    Attributes:
        target: `name:port`, `address:port`, or for a lookup the name.
        reason: Why, in words.
        failed: It was allowed, but could not be reached.
    """

    target: str
    reason: str
    failed: bool = False

    def __str__(self) -> str:
        return f"{'not reached' if self.failed else 'blocked'}: {self.target} ({self.reason})"


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a command ended, what it wrote and what it used.

    Attributes:
        reason: `exited`, `signalled`, `timed_out`, `out_of_memory`, `cancelled` (something ended it from outside),
            `could_not_start` (no such program), or `sandbox_gone`.
        exit_code: The exit status as a shell would give it: 128+n for signal n, 124 for a time limit, 126 or 127 for a program
            that can't be started, 125 for what is the sandbox's fault.
        stdout: Standard output; also standard error, in the order written, where the streams were merged. Where it was
            larger than the cap, its head and its tail with a line between them that says how much is missing.
        stderr: Standard error, as `stdout`; empty where the streams were merged.
        stdout_omitted: Bytes that are missing in `stdout`.
        stderr_omitted: Bytes that are missing in `stderr`.
        signal: The signal that killed it, or None.
        core_dumped: Whether the signal dumped core.
        wall_time: Seconds from start to end.
        user_time: Seconds of CPU time in user mode.
        system_time: Seconds of CPU time in the kernel.
        max_rss: Largest resident memory of one of its processes, in bytes.
        memory_peak: Most memory that all of its processes had together, with what the kernel kept for them, in bytes; None
            where the machine does not tell (it needs a control group, and Linux 5.19).
        limits_hit: Limits that it met, each as a sentence: `killed: memory limit 128 MiB, peak 128 MiB, by process python3`.
        degraded: What the machine could not enforce of the sandbox's default limits.
        denials: What the network refused in the sandbox while the command ran, at most 50; other commands' of that time
            count too.
        detail: A sentence about what went wrong with the sandbox; mostly empty.
    """

    reason: Reason
    exit_code: int
    stdout: bytes = b""
    stderr: bytes = b""
    stdout_omitted: int = 0
    stderr_omitted: int = 0
    signal: int | None = None
    core_dumped: bool = False
    wall_time: float = 0.0
    user_time: float = 0.0
    system_time: float = 0.0
    max_rss: int = 0
    memory_peak: int | None = None
    limits_hit: tuple[str, ...] = ()
    degraded: tuple[str, ...] = ()
    denials: tuple[Denial, ...] = ()
    detail: str = ""

    @property
    def ok(self) -> bool:
        """Whether the command ended by itself with status 0."""
        return self.reason == "exited" and self.exit_code == 0

    @property
    def truncated(self) -> bool:
        """Whether output was left out."""
        return bool(self.stdout_omitted or self.stderr_omitted)


def signal_name(number: int) -> str:
    """`SIGKILL (signal 9)`, or `signal 40` for one without a name."""
    try:
        return f"{signals.Signals(number).name} (signal {number})"
    except ValueError:
        return f"signal {number}"
