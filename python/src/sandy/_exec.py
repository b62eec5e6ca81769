"""The `exec` request: running a command, collecting its output, and telling a model how it ended."""

from __future__ import annotations

import errno
import io
import os
import re
import signal as signals
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any, Final, TypeAlias, cast, get_args

from sandy import _plain
from sandy._arguments import check_variables, encode_text, encode_word, wrong_type
from sandy._chunk import Stream
from sandy._errors import ProtocolError, SandboxGoneError
from sandy._exchange import Credits, Feed, Reply, Send, receive, start
from sandy._kept_output import KeptOutput, Output
from sandy._outcome import SANDBOX_FAILED, TIMED_OUT, Denial, Outcome, Reason, signal_name
from sandy._wire import MAX_DATA, WINDOW

if TYPE_CHECKING:
    from sandy._exchange import Exchange
    from sandy._wire import Frame

OnOutput: TypeAlias = Callable[[Stream, bytes], None]
Stdin: TypeAlias = bytes | bytearray | memoryview | str | IO[bytes] | Iterable[bytes] | None

_STDIN: Final = "bytes, a str, a file object opened in binary mode, or an iterable of bytes"
_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_GRACE: Final = 30.0
"""Seconds beyond a command's own time limit after which no answer means that the sandbox is broken."""

_SHELL_SIGSYS: Final = 128 + signals.SIGSYS
_SHOWN_DENIALS: Final = 10  # to a model; `run` has all


@dataclass(frozen=True, slots=True)
class Command:
    """A command to run. `argv` is looked up in the sandbox's PATH; with `shell` it is one shell command line."""

    argv: tuple[bytes, ...]
    shell: bool
    timeout: float  # seconds; 0 is none
    keep: int  # bytes kept of each output
    merge: bool = True
    cwd: bytes = b""
    env: tuple[bytes, ...] = ()
    stdin: Stdin = None
    on_output: OnOutput | None = None
    keep_streamed: bool = False
    """With `on_output`: whether its output is kept here as well, as without."""


class OutputCallbackError(Exception):
    """What a caller's `on_output` raised, kept apart from what the sandbox does.

    Attributes:
        error: The exception.
    """

    def __init__(self, error: Exception) -> None:
        """Wraps it."""
        self.error = error
        super().__init__(error)


def guard(on_output: OnOutput) -> OnOutput:
    """The same, with its exceptions wrapped."""

    def call(stream: Stream, data: bytes) -> None:
        try:
            on_output(stream, data)
        except Exception as error:
            raise OutputCallbackError(error) from error

    return call


def encode_env(env: Mapping[str, str] | None) -> tuple[bytes, ...]:
    """`NAME=value` strings.

    Raises:
        TypeError: If it is no mapping of texts to texts.
        ValueError: If a name is none that a variable can have, or a value has a NUL.
    """
    pairs = []
    for name, value in ({} if env is None else check_variables("env", env)).items():
        if not _VARIABLE.fullmatch(name):
            msg = f'env: {name!r} is not the name of a variable: use letters, digits and "_", and no digit first'
            raise ValueError(msg)
        pairs.append(name.encode() + b"=" + encode_word(f"env[{name!r}]", value))
    return tuple(pairs)


@dataclass(frozen=True, slots=True)
class Ended:
    """A command's end and its kept output."""

    reply: Reply
    stdout: Output
    stderr: Output


class _Collected:
    """A command's output while it runs."""

    def __init__(self, command: Command) -> None:
        self._on_output = command.on_output
        self._kept = (KeptOutput(command.keep), KeptOutput(command.keep)) if command.keep_streamed else None
        self._stdout, self._stderr = self._kept or (Output(), Output())

    def take(self, event: Stream, frame: Frame) -> None:
        if self._on_output is None:
            (self._stdout if event == "stdout" else self._stderr).add(frame)
            return
        piece = bytes(frame.payload)
        self._on_output(event, piece)
        if self._kept is not None:
            self._kept[event == "stderr"].keep(piece)

    def finish(self, reply: Reply) -> Ended:
        if self._kept is None:
            self._stdout.omitted, self._stderr.omitted = _omitted(reply)
        else:
            for output in self._kept:
                output.fold()
        return Ended(reply, self._stdout, self._stderr)


def run_command(sandbox: str, command: Command) -> Exchange[Ended]:
    """Runs a command to its end.

    Raises:
        ValueError: If it is larger than the protocol allows.
    """
    feed, first = _stdin(command.stdin)
    collected = _Collected(command)
    credit = Credits()
    argv = command.argv
    opening = start(
        "exec",
        (*argv, command.cwd, *command.env),
        first,
        patience=command.timeout + _GRACE if command.timeout else None,
        sandbox=sandbox,
        argc=None if len(argv) == 1 else len(argv),
        shell=command.shell,
        stdin=None if feed is None and command.stdin is None else "pipe",
        merge=None if command.merge else False,
        stream=None if command.on_output is None else True,
        keep=command.keep,
        timeout_ms=max(1, round(command.timeout * 1000)) if command.timeout else None,
    )
    yield opening
    if feed is None and command.stdin is not None:
        yield Send({"op": "eof"})
    while True:
        send = feed.next_send() if feed is not None else None
        if send is not None:
            yield send
            continue
        frame = yield from receive()
        event = frame.header.get("ev")
        if event == "end":
            return collected.finish(Reply(frame.header, last=frame))
        if event == "credit" and feed is not None:
            feed.credited(frame)
        elif event in ("stdout", "stderr"):
            collected.take(event, frame)
            give_back = credit.consumed(len(frame.payload))
            if give_back is not None:
                yield give_back


def _stdin(stdin: Stdin) -> tuple[Feed | None, bytes]:
    """What to send piece by piece, and what to send with the request."""
    if stdin is None:
        return None, b""
    if isinstance(stdin, str):
        stdin = encode_text("stdin", stdin)
    if isinstance(stdin, (bytes, bytearray, memoryview)):
        data = bytes(stdin)
        return (None, data) if len(data) <= WINDOW else (Feed(iter((data,))), b"")
    # Nothing is started for what can be known to be wrong; of an iterable only its pieces tell.
    if is_binary_file(stdin, "read"):
        return Feed(read_pieces("stdin", cast("IO[bytes]", stdin))), b""
    if isinstance(stdin, (io.TextIOBase, Mapping)) or not isinstance(stdin, Iterable):
        raise wrong_type("stdin", stdin, _STDIN)
    return Feed(_pieces(stdin)), b""


def is_binary_file(value: object, method: str) -> bool:
    """Whether it is a file object that can be read or written, and not known to do so with text."""
    return callable(getattr(value, method, None)) and not isinstance(value, io.TextIOBase)


def read_pieces(name: str, file: IO[bytes]) -> Iterator[bytes]:
    """The content of a binary file object, a frame at a time.

    Raises:
        TypeError: If it gives text.
    """
    while piece := file.read(MAX_DATA):
        if not isinstance(piece, (bytes, bytearray, memoryview)):
            msg = f"{name}: the file object gives {type(piece).__name__}, not bytes: open it in binary mode"
            raise TypeError(msg)
        yield bytes(piece)


def _pieces(pieces: Iterable[bytes]) -> Iterator[bytes]:
    for piece in pieces:
        if not isinstance(piece, (bytes, bytearray, memoryview)):
            raise wrong_type("a piece of stdin", piece, "bytes")
        yield bytes(piece)


def _omitted(reply: Reply) -> tuple[int, int]:
    omitted = reply.end.get("omitted")
    if not isinstance(omitted, dict):
        return 0, 0
    counts = [omitted.get(name, 0) for name in ("stdout", "stderr")]
    if any(type(count) is not int or count < 0 for count in counts):
        msg = f"omitted is {omitted!r}"
        raise ProtocolError(msg)
    return counts[0], counts[1]


def to_outcome(ended: Ended, degraded: tuple[str, ...]) -> Outcome:
    """The outcome of a command that a sandbox answered for.

    Raises:
        SandboxGoneError: If the sandbox is gone or refused the request.
    """
    reply = ended.reply
    if reply.error is not None:
        raise SandboxGoneError(error_sentence(reply))
    status = _Status(reply)
    return Outcome(
        reason=status.reason,
        exit_code=status.exit_code,
        stdout=ended.stdout.join(),
        stderr=ended.stderr.join(),
        stdout_omitted=ended.stdout.omitted,
        stderr_omitted=ended.stderr.omitted,
        signal=status.signal,
        core_dumped=reply.end.get("core") is True,
        wall_time=reply.number("wall_ms") / 1000,
        user_time=reply.number("user_ms") / 1000,
        system_time=reply.number("system_ms") / 1000,
        max_rss=reply.number("max_rss_kib") * 1024,
        memory_peak=reply.number("memory_peak") if "memory_peak" in reply.end else None,
        limits_hit=limits_hit(reply),
        degraded=degraded,
        denials=denials(reply),
        detail=status.detail,
    )


def to_response(ended: Ended, timeout: float) -> _plain.ExecuteResponse:
    """The same for a model: one text, with a note where something special happened."""
    reply = ended.reply
    if reply.error is not None:
        return failed_response(error_sentence(reply))
    output = ended.stdout.text() + closing_note(ended, timeout)
    return _plain.ExecuteResponse(output=output, exit_code=_Status(reply).exit_code, truncated=bool(ended.stdout.omitted))


def denials(reply: Reply) -> tuple[Denial, ...]:
    """What the network refused while the command ran."""
    listed = reply.end.get("denials", [])
    try:
        return tuple(Denial(str(each["target"]), str(each["reason"]), each.get("failed") is True) for each in listed)
    except (TypeError, KeyError, AttributeError):
        msg = f"denials is {listed!r}"
        raise ProtocolError(msg) from None


def limits_hit(reply: Reply) -> tuple[str, ...]:
    """Sentences about the limits that a command met."""
    notes = reply.end.get("limit_notes", [])
    if not isinstance(notes, list) or not all(isinstance(note, str) for note in notes):
        msg = f"limit_notes is {notes!r}"
        raise ProtocolError(msg)
    return tuple(notes)


def closing_note(ended: Ended, timeout: float) -> str:
    """The last lines of what a model gets, or "" where the exit status says it all."""
    notes = [str(denial) for denial in denials(ended.reply)[:_SHOWN_DENIALS]]
    if left := len(denials(ended.reply)) - len(notes):
        notes.append(f"blocked: {left} more")
    notes += limits_hit(ended.reply)
    if note := _Status(ended.reply).note(timeout):
        notes.append(note)
    start = "" if ended.stdout.at_line_start() or not notes else "\n"
    return start + "".join(f"[sandy] {note}\n" for note in notes)


def failed_response(sentence: str) -> _plain.ExecuteResponse:
    """What `execute` returns where the sandbox could not run the command."""
    return _plain.ExecuteResponse(output=f"[sandy] {sentence}\n", exit_code=SANDBOX_FAILED)


def error_sentence(reply: Reply) -> str:
    """A failed request as a sentence."""
    if reply.error == "no_sandbox":
        return f"the sandbox is gone: {reply.detail}" if reply.detail else "the sandbox is gone"
    return f"the sandbox could not do it: {reply.error}" + (f": {reply.detail}" if reply.detail else "")


class _Status:
    """The reason, exit status and signal of a command."""

    def __init__(self, reply: Reply) -> None:
        reason: Any = reply.end.get("reason")
        if reason not in get_args(Reason):
            msg = f"a command ended for the reason {reason!r}"
            raise ProtocolError(msg)
        self.reason: Reason = reason
        self.signal: int | None = None
        self.detail = reply.detail
        if reason == "exited":
            self.exit_code = reply.number("code")
        elif reason == "signalled":
            self.signal = reply.number("signal")
            self.exit_code = 128 + self.signal
        elif reason == "timed_out":
            self.exit_code = TIMED_OUT
        elif reason == "could_not_start":
            self.exit_code = reply.number("code")
            number = reply.number("errno")
            if not self.detail:
                self.detail = f"{errno.errorcode.get(number, number)}: {os.strerror(number)}"
            if reply.end.get("cwd") is True:
                self.detail = f"the working directory: {self.detail}"
        elif reason == "out_of_memory":
            self.exit_code = 128 + signals.SIGKILL
        else:
            self.exit_code = SANDBOX_FAILED

    def note(self, timeout: float) -> str:
        """What a model should be told about the end, or "" where the exit status says it all."""
        if self.reason == "timed_out":
            return f"the command timed out after {timeout:g} s; it and all that it started were killed"
        if self.reason == "out_of_memory":
            return ""  # limits_hit() says it
        if self.reason == "could_not_start":
            return f"could not start the command: {self.detail}"
        if self.reason == "cancelled":
            return "the command was cancelled; it and all that it started were killed"
        if self.signal == signals.SIGSYS or (self.reason == "exited" and self.exit_code == _SHELL_SIGSYS):
            return (
                "killed by SIGSYS (signal 31): the seccomp policy refuses a system call that it made; "
                "32-bit programs are refused as a whole"
            )
        if self.signal is not None:
            return f"killed by {signal_name(self.signal)}"
        return ""
