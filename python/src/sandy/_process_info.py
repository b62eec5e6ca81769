"""Processes of a sandbox as it lists them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from sandy._errors import ProtocolError
from sandy._place import decode_path
from sandy._sandbox_info import to_time

if TYPE_CHECKING:
    from sandy._exchange import Reply
    from sandy._outcome import Outcome


@dataclass(frozen=True, slots=True)
class ProcessInfo:
    """A process that was spawned, as it was when it was asked for.

    Attributes:
        number: Its number in the sandbox, never used again: for `Sandbox.process` and `Sandbox.read_log`.
        pid: Its process id as seen in the sandbox.
        command: A program and its arguments, or one shell command line; cut off after 4,096 bytes.
        started_at: When it started, in UTC, to the millisecond.
        tty: Whether it has a terminal.
        outcome: How it ended, without its output; None while it runs, and where the sandbox could not say how.
        running: Whether it had not ended.
    """

    number: int
    pid: int
    command: tuple[str, ...]
    started_at: datetime
    tty: bool = False
    outcome: Outcome | None = None
    running: bool = True

    @property
    def exit_code(self) -> int | None:
        """As of its outcome; None while it runs."""
        return None if self.outcome is None else self.outcome.exit_code


def to_info(reply: Reply, command: tuple[str, ...], outcome: Outcome | None = None, *, running: bool = True) -> ProcessInfo:
    """From the fields of `started`.

    Raises:
        ProtocolError: If they make no sense.
    """
    try:
        started = to_time(reply.number("started_ms"))
    except OverflowError:
        msg = f"started_ms is {reply.end.get('started_ms')!r}"
        raise ProtocolError(msg) from None
    number, pid = reply.number("process"), reply.number("pid")
    return ProcessInfo(number, pid, command, started, reply.end.get("tty") is True, outcome, running)


def decode_words(payload: bytes | bytearray) -> tuple[str, ...]:
    """Words that each end with a NUL; the last may be cut off."""
    words = bytes(payload).split(b"\0")
    return tuple(map(decode_path, words if words[-1] else words[:-1]))
