"""The requests about processes that go on without their requester (PROTOCOL.md, "Processes")."""

from __future__ import annotations

import errno
import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from sandy._chunk import Chunk, Log
from sandy._errors import CommandNotStartedError, ProcessNotFoundError, ProtocolError, SandboxGoneError
from sandy._exchange import Credits, Reply, Send, receive, request, start
from sandy._exec import Ended, error_sentence, to_outcome
from sandy._kept_output import KeptOutput, Output
from sandy._process_info import ProcessInfo, decode_words, to_info

if TYPE_CHECKING:
    from sandy._exchange import Exchange
    from sandy._outcome import Outcome
    from sandy._wire import Frame

_START_PATIENCE: Final = 120.0
"""Seconds after which a process that has neither started nor failed means that the sandbox is broken."""


@dataclass(frozen=True, slots=True)
class Spawn:
    """A process to start; the fields are those of `Sandbox.spawn`."""

    argv: tuple[bytes, ...]
    shell: bool
    timeout: float
    cwd: bytes = b""
    env: tuple[bytes, ...] = ()
    stdin: bytes = b""
    pipe: bool = False
    merge: bool = True
    tty: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class Opened:
    """A process that is attached to. `offset` is where its output goes on."""

    info: ProcessInfo
    offset: int


def spawn(sandbox: str, command: Spawn, words: tuple[str, ...]) -> Exchange[Opened]:
    """Starts a process; its request stays open.

    Raises:
        CommandNotStartedError: If its command can't be started.
        SandboxGoneError: If there is no such sandbox.
        ValueError: If it is larger than the protocol allows.
    """
    yield start(
        "spawn",
        (*command.argv, command.cwd, *command.env),
        command.stdin,
        patience=_START_PATIENCE,
        sandbox=sandbox,
        argc=None if len(command.argv) == 1 else len(command.argv),
        shell=command.shell,
        stdin="pipe" if command.pipe else None,
        merge=None if command.merge else False,
        timeout_ms=max(1, round(command.timeout * 1000)) if command.timeout else None,
        tty=None if command.tty is None else {"rows": command.tty[0], "cols": command.tty[1]},
    )
    frame = yield from receive()
    reply = Reply(frame.header, last=frame)
    _check(reply, sandbox)
    if frame.header.get("ev") == "started":
        return Opened(to_info(reply, words), reply.number("offset"))
    if reply.end.get("reason") != "could_not_start":
        msg = f"a process began with {frame.header!r}"
        raise ProtocolError(msg)
    number = reply.number("errno")
    why = reply.detail or f"{errno.errorcode.get(number, number)}: {os.strerror(number)}"
    where = "the working directory: " if reply.end.get("cwd") is True else ""
    raise CommandNotStartedError(f"could not start the command: {where}{why}", number, reply.number("code"))


def attach(sandbox: str, number: int, offset: int | None, *, follow: bool, hold: bool) -> Exchange[Opened]:
    """Attaches to a process; the request stays open.

    Raises:
        ProcessNotFoundError: If there is none of that number.
        SandboxGoneError: If there is no such sandbox.
    """
    infos = yield from list_processes(sandbox, ())
    words = next((info.command for info in infos if info.number == number), None)
    if words is None:
        raise _not_found(sandbox, number)
    yield _attach(sandbox, number, offset, follow=follow, hold=hold)
    frame = yield from receive()
    reply = Reply(frame.header, last=frame)
    _check(reply, sandbox, number)
    if frame.header.get("ev") != "started":
        msg = f"a process was attached to with {frame.header!r}"
        raise ProtocolError(msg)
    return Opened(to_info(reply, words), reply.number("offset"))


def list_processes(sandbox: str, degraded: tuple[str, ...]) -> Exchange[list[ProcessInfo]]:
    """The processes that run, and the last ones that have ended, by number.

    Raises:
        SandboxGoneError: If there is no such sandbox.
    """
    yield start("processes", sandbox=sandbox)
    infos: list[ProcessInfo] = []
    credit = Credits()
    while True:
        frame = yield from receive()
        reply = Reply(frame.header, last=frame)
        if frame.header.get("ev") == "end":
            _check(reply, sandbox)
            return sorted(infos, key=lambda info: info.number)
        if frame.header.get("ev") == "data":
            outcome = end_outcome(reply, degraded) if "reason" in frame.header else None
            running = frame.header.get("running") is True
            infos.append(to_info(reply, decode_words(frame.payload), outcome, running=running))
            give_back = credit.consumed(len(frame.payload))
            if give_back is not None:
                yield give_back


def end_outcome(reply: Reply, degraded: tuple[str, ...]) -> Outcome:
    """How a process ended; its output is not in it.

    Raises:
        SandboxGoneError: If its sandbox ended first.
    """
    return to_outcome(Ended(reply, Output(), Output()), degraded)


def with_output(outcome: Outcome, stdout: KeptOutput, stderr: KeptOutput) -> Outcome:
    """The same outcome with output."""
    stdout.fold()
    stderr.fold()
    return replace(
        outcome,
        stdout=stdout.join(),
        stderr=stderr.join(),
        stdout_omitted=stdout.omitted,
        stderr_omitted=stderr.omitted,
    )


def signal(sandbox: str, number: int, value: int) -> Exchange[None]:
    """Sends a signal.

    Raises:
        ProcessNotFoundError: If there is none of that number.
        SandboxGoneError: If there is no such sandbox.
    """
    reply = yield from request(start("signal", sandbox=sandbox, process=number, signal=value))
    _check(reply, sandbox, number)


def kill(sandbox: str, number: int) -> Exchange[None]:
    """Kills a process with all that it started.

    Raises:
        ProcessNotFoundError: If there is none of that number.
        SandboxGoneError: If there is no such sandbox.
    """
    reply = yield from request(start("kill", sandbox=sandbox, process=number))
    _check(reply, sandbox, number)


class LogReader:
    """Collects what is kept of a process's output.

    With a limit the request may be left open, and its connection is then to be closed: cancelling it would kill the process.
    """

    def __init__(self, sandbox: str, number: int, offset: int | None, limit: int | None) -> None:
        """From `offset` on (None is from the oldest that is kept), at most `limit` bytes."""
        self._sandbox = sandbox
        self._number = number
        self._offset = offset
        self._limit = limit
        self._chunks: list[Chunk] = []
        self._size = 0
        self.finished = False
        """Whether the request has ended."""

    def read(self) -> Exchange[Log]:
        """Does it.

        Raises:
            ProcessNotFoundError: If there is none of that number.
            SandboxGoneError: If there is no such sandbox.
        """
        yield _attach(self._sandbox, self._number, self._offset, follow=False, hold=False)
        credit = Credits()
        running = True
        track = Track(self._offset or 0)
        while True:
            frame = yield from receive()
            reply = Reply(frame.header, last=frame)
            event = frame.header.get("ev")
            if event == "end":
                self.finished = True
                _check(reply, self._sandbox, self._number)
                running = reply.end.get("running") is True
                break
            if event == "started" and self._offset is None:
                track = Track(reply.number("offset"))
            elif event == "lost":
                track.lose(reply.number("bytes"))
            elif event in ("stdout", "stderr"):
                chunk = to_chunk(frame)
                if self._limit is not None:
                    chunk = Chunk(chunk[: self._limit - self._size], chunk.stream, chunk.offset)
                track.take(chunk)
                self._size += len(chunk)
                if chunk:
                    self._chunks.append(chunk)
                if self._size == self._limit:
                    break
                give_back = credit.consumed(len(frame.payload))
                if give_back is not None:
                    yield give_back
        offset = self._chunks[0].offset if self._chunks else track.at
        return Log(tuple(self._chunks), offset, track.at, track.lost, running)


class Track:
    """Where a reader of a process's output is, and what it has lost on the way.

    Attributes:
        at: The offset that is to come next.
        lost: Bytes that did not come.
    """

    def __init__(self, at: int) -> None:
        """Begins at an offset."""
        self.at = at
        self.lost = 0

    def lose(self, size: int) -> None:
        """Takes a `lost` event."""
        self.at += size
        self.lost += size

    def take(self, chunk: Chunk) -> None:
        """Takes the next piece."""
        if chunk.offset > self.at:
            self.lost += chunk.offset - self.at
        self.at = chunk.end


def to_chunk(frame: Frame) -> Chunk:
    """A piece of output.

    Raises:
        ProtocolError: If it has no offset.
    """
    offset = frame.header.get("offset")
    if type(offset) is not int or offset < 0:
        msg = f"output at the offset {offset!r}"
        raise ProtocolError(msg)
    return Chunk(frame.payload, "stderr" if frame.header.get("ev") == "stderr" else "stdout", offset)


def _attach(sandbox: str, number: int, offset: int | None, *, follow: bool, hold: bool) -> Send:
    return start("attach", sandbox=sandbox, process=number, offset=offset, follow=follow, hold=hold)


def _check(reply: Reply, sandbox: str, number: int | None = None) -> None:
    if reply.error == "no_process" and number is not None:
        raise _not_found(sandbox, number)
    if reply.error is not None:
        raise SandboxGoneError(error_sentence(reply))


def _not_found(sandbox: str, number: int) -> ProcessNotFoundError:
    return ProcessNotFoundError(f"sandbox {sandbox} has no process {number}: list_processes() has those that are known")
