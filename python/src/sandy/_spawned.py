"""A process of a sandbox that goes on by itself, and somebody's view of it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Generator, Iterator
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar

from sandy import _process_requests, _wait
from sandy._arguments import check_count, encode_text, wrong_type
from sandy._channel import Channel
from sandy._closing import Closing
from sandy._errors import ProcessNotFoundError, SandboxError, SandboxGoneError
from sandy._exchange import Reply
from sandy._kept_output import KeptOutput
from sandy._stream_state import StreamState

if TYPE_CHECKING:
    from datetime import datetime

    from sandy._chunk import Chunk, Log
    from sandy._connection import Connection
    from sandy._exchange import Exchange
    from sandy._outcome import Outcome
    from sandy._process_info import ProcessInfo
    from sandy._process_requests import Opened
    from sandy._processes import Processes
    from sandy._wait import Operation

T = TypeVar("T")

MAX_CELLS: Final = 65_535
"""Rows, and columns, that a terminal can have."""


class Process(Closing):
    r"""A process in a sandbox: its output as it comes, its input, its end. `Sandbox.spawn` and `Sandbox.process` make it.

    Iterating gives pieces of output until the process has ended, with `for` or with `async for`. Who stops reading holds up the
    process, as with a pipe (or loses output, where it was attached to with `hold=False`), and nobody else. Each method has a
    twin for asyncio, named `a...`; `await process` is its end. Threads and tasks may share it.

    It is a view: the process goes on when this object is closed or collected, and its output is then kept in its log as far as
    that reaches. `kill` ends it, and so does the end of the sandbox, which lives as long as this object at least.

    Example:
        >>> from sandy import Sandbox
        >>> with Sandbox() as sandbox, sandbox.spawn(["cat"], stdin="pipe") as process:
        ...     process.write(b"hello\n")
        ...     next(iter(process))
        b'hello\n'
    """

    def __init__(self, sandbox: Processes, connection: Connection, opened: Opened, *, stdin: bool, follow: bool = True) -> None:
        """Not for users: takes over a connection whose request is open."""
        self._sandbox = sandbox
        self._info = opened.info
        self._stdin = stdin
        self._follow = follow
        self._state = StreamState(opened.offset)
        self._readers: dict[int, object] = {}  # iterations, and their threads or tasks, so that wait() drops nothing of theirs
        self._outcome: Outcome | None = None
        self._collected: tuple[KeptOutput, KeptOutput] | None = None  # by communicate()
        name = f"process {self.number} of sandbox {sandbox.id}"
        self._channel = Channel(sandbox._serve, connection, name, self._state.on_event)  # noqa: SLF001 - its own package

    # What it is.

    @property
    def number(self) -> int:
        """Its number in the sandbox, never used again."""
        return self._info.number

    @property
    def pid(self) -> int:
        """Its process id as seen in the sandbox."""
        return self._info.pid

    @property
    def command(self) -> tuple[str, ...]:
        """A program and its arguments, or one shell command line; of one that was attached to at most 4,096 bytes."""
        return self._info.command

    @property
    def started_at(self) -> datetime:
        """When it started, in UTC."""
        return self._info.started_at

    @property
    def tty(self) -> bool:
        """Whether it has a terminal."""
        return self._info.tty

    @property
    def offset(self) -> int:
        """The offset of the output that comes next: where `Sandbox.process` can go on with it."""
        self._channel.check_process()
        with self._channel.lock:
            return self._state.offset

    @property
    def lost(self) -> int:
        """Bytes that were overwritten before they could be read; 0 unless it was attached to."""
        return self._state.track.lost

    @property
    def closed(self) -> bool:
        """Whether `close` was called."""
        return self._channel.closed

    def __repr__(self) -> str:
        """Names the sandbox, the process, and how it ended, if that is known here."""
        state = " closed" if self.closed else "" if self._outcome is None else f" {self._outcome.reason}"
        return f"<sandy.Process {self.number} of {self._sandbox.id}{state}>"

    # Output.

    def __iter__(self) -> Iterator[Chunk]:
        """Pieces of output as they come, until the process has ended."""
        return _Reader(self)

    def __aiter__(self) -> AsyncIterator[Chunk]:
        """The same for asyncio."""
        return _Reader(self)

    def log(self, offset: int | None = 0, limit: int | None = None) -> Log:
        """Reads what is kept of its output, as `Sandbox.read_log`; what comes by iteration is not touched."""
        return self._sandbox.read_log(self.number, offset, limit)

    async def alog(self, offset: int | None = 0, limit: int | None = None) -> Log:
        """As `log`."""
        return await self._sandbox.aread_log(self.number, offset, limit)

    # Input.

    def write(self, data: bytes | bytearray | memoryview | str) -> None:
        """Writes to its standard input, or its terminal; returns when the sandbox has taken all of it.

        The sandbox holds 1 MiB that the process has not read. Beyond that, the process has to read, and somebody its output if it
        waits for that: in one thread, use `communicate`.

        Raises:
            SandboxError: If it has no input, was closed, or has ended.
            TypeError: If it is no bytes or text.
        """
        self._run(self._write(self._check_input(data)))

    async def awrite(self, data: bytes | bytearray | memoryview | str) -> None:
        """As `write`. When the task is cancelled, what was not sent yet is not."""
        await self._arun(self._write(self._check_input(data)))

    def close_stdin(self) -> None:
        """Ends its input, after all that was written. A terminal gets what Ctrl-D types."""
        self._check_input(b"")
        self._run(self._close_stdin())

    async def aclose_stdin(self) -> None:
        """As `close_stdin`."""
        self._check_input(b"")
        await self._arun(self._close_stdin())

    def resize(self, rows: int, cols: int) -> None:
        """Gives its terminal another size, of which the process is told by SIGWINCH.

        Raises:
            SandboxError: If it has no terminal, was closed, or has ended.
        """
        self._run(self._resize(self._check_size(rows, cols)))

    async def aresize(self, rows: int, cols: int) -> None:
        """As `resize`."""
        await self._arun(self._resize(self._check_size(rows, cols)))

    # Its end.

    def signal(self, number: int) -> None:
        """Sends a signal to the process itself; nothing where it has ended."""
        exchange = _process_requests.signal(self._sandbox.id, self.number, check_count("number", number, "a signal's number"))
        self._tell(exchange)

    async def asignal(self, number: int) -> None:
        """As `signal`."""
        exchange = _process_requests.signal(self._sandbox.id, self.number, check_count("number", number, "a signal's number"))
        await self._atell(exchange)

    def kill(self) -> None:
        """Kills it with all that it started; its outcome is `cancelled`. Nothing where it has ended."""
        self._tell(_process_requests.kill(self._sandbox.id, self.number))

    async def akill(self) -> None:
        """As `kill`."""
        await self._atell(_process_requests.kill(self._sandbox.id, self.number))

    def poll(self) -> Outcome | None:
        """How it ended, without its output; None while it runs. Reads nothing of its output.

        Raises:
            SandboxError: If the sandbox is closed or gone, or has forgotten the process.
        """
        if self._outcome is None:
            self._note(self._sandbox.list_processes())
        return self._outcome

    async def apoll(self) -> Outcome | None:
        """As `poll`."""
        if self._outcome is None:
            self._note(await self._sandbox.alist_processes())
        return self._outcome

    def wait(self, timeout: float | None = None) -> Outcome:
        """Waits for its end. Output that no other thread or task reads is dropped meanwhile; it is in the log.

        Args:
            timeout: Seconds; None is for ever.

        Returns:
            How it ended, without its output.

        Raises:
            TimeoutError: If it runs on. It does.
            SandboxError: If this object or the sandbox was closed, or is gone.
        """
        return self._run(self._wait(threading.get_ident()), _check_wait(timeout))

    async def await_(self, timeout: float | None = None) -> Outcome:  # noqa: ASYNC109 - the twin of wait()
        """As `wait`; `await process` is the same without a time limit."""
        return await self._arun(self._wait(asyncio.current_task()), _check_wait(timeout))

    def __await__(self) -> Generator[Any, Any, Outcome]:
        """Waits for its end."""
        return self.await_().__await__()

    def communicate(self, data: bytes | bytearray | memoryview | str | None = None, timeout: float | None = None) -> Outcome:
        """Writes all of the data, ends the input, and reads the output meanwhile, until the process has ended.

        Args:
            data: For its standard input; None writes nothing, and leaves the input as it is.
            timeout: Seconds; None is for ever.

        Returns:
            How it ended, with what it wrote from now on: of each output at most the sandbox's `max_output_bytes`, as with `run`.

        Raises:
            TimeoutError: If it runs on. It does, and another call, without data, goes on from there: nothing is lost.
            SandboxError: If this object or the sandbox was closed, or is gone; or if data is given and there is no input.
        """
        return self._run(self._communicate(self._begin(data), threading.get_ident()), _check_wait(timeout))

    async def acommunicate(
        self,
        data: bytes | bytearray | memoryview | str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 - as for wait()
    ) -> Outcome:
        """As `communicate`."""
        return await self._arun(self._communicate(self._begin(data), asyncio.current_task()), _check_wait(timeout))

    def close(self) -> None:
        """Lets go of it: the process goes on, and its output goes into the log alone. May be called again."""
        self._channel.close()

    async def aclose(self) -> None:
        """As `close`, which does not wait for anything."""
        self._channel.close()

    # Within the package.

    def feed(self, data: bytes | None) -> Operation[None]:
        """Not for users: gives a new process all of its input; None is for what it needs none, or gets it later."""
        if data is not None:
            self._channel.check_process()
            with self._channel.lock:
                self._state.input.add(data)
                self._state.input.close()
                self._state.pump(self._channel)
            yield from self._channel.flush()

    def abort(self) -> None:
        """Not for users: kills a new process that nobody gets to see, and closes this."""
        try:
            self._channel.post({"op": "cancel"})
        except SandboxGoneError:
            return  # it is the parent's
        self.close()

    def _next(self, reader: object, who: object) -> Operation[Chunk | None]:
        self._readers[id(reader)] = who
        state = self._state
        yield from self._channel.receive_until(lambda: bool(state.chunks))
        with self._channel.lock:
            if state.chunks:
                return state.take(self._channel)
        self._readers.pop(id(reader), None)
        self._finish()
        return None

    def _finish(self) -> None:
        """Notes how it ended, from the request's end.

        Raises:
            SandboxGoneError: If the sandbox ended first.
        """
        frame = self._channel.ended
        if frame is None or self._outcome is not None or frame.header.get("running") is True:
            return
        self._outcome = _process_requests.end_outcome(Reply(frame.header, last=frame), self._sandbox.degraded)

    def _ended(self) -> Outcome:
        self._finish()
        if self._outcome is None:
            msg = f"process {self.number} was attached to with follow=False, which does not wait for its end"
            raise SandboxError(msg)
        return self._outcome

    def _wait(self, who: object) -> Operation[Outcome]:
        state = self._state

        def drops() -> bool:
            return bool(state.chunks) and all(reader == who for reader in list(self._readers.values()))

        while self._outcome is None and self._channel.ended is None:
            yield from self._channel.receive_until(drops)
            with self._channel.lock:
                while drops():
                    state.take(self._channel)
        return self._ended()

    def _write(self, data: bytes) -> Operation[None]:
        self._channel.check_process()
        with self._channel.lock:
            piece = self._state.input.add(data)
            self._state.pump(self._channel)
        try:
            yield from self._channel.receive_until(lambda: not piece.left)
            yield from self._channel.flush()
            if piece.left:
                self._check_running()
        finally:
            with self._channel.lock:
                self._state.input.discard(piece)

    def _close_stdin(self) -> Operation[None]:
        self._channel.check_process()
        with self._channel.lock:
            self._state.input.close()
            self._state.pump(self._channel)
        yield from self._channel.flush()

    def _resize(self, size: dict[str, object]) -> Operation[None]:
        self._channel.post({"op": "resize", **size})
        yield from self._channel.flush()

    def _begin(self, data: bytes | bytearray | memoryview | str | None) -> tuple[KeptOutput, KeptOutput]:
        if data is not None:
            raw = self._check_input(data)
            self._channel.check_process()
            with self._channel.lock:
                self._state.input.add(raw)
                self._state.input.close()
                self._state.pump(self._channel)
        if self._collected is None:
            self._collected = KeptOutput(self._sandbox._keep), KeptOutput(self._sandbox._keep)  # noqa: SLF001 - its own package
        return self._collected

    def _communicate(self, collected: tuple[KeptOutput, KeptOutput], who: object) -> Operation[Outcome]:
        try:
            while (chunk := (yield from self._next(collected, who))) is not None:
                collected[chunk.stream == "stderr"].keep(chunk)
        finally:
            self._readers.pop(id(collected), None)
        return _process_requests.with_output(self._ended(), *collected)

    def _check_input(self, data: bytes | bytearray | memoryview | str) -> bytes:
        raw = encode_text("data", data) if isinstance(data, str) else data
        if not isinstance(raw, (bytes, bytearray, memoryview)):
            raise wrong_type("data", data, "bytes or a str")
        if not self._stdin:
            msg = f'process {self.number} has no input: spawn it with stdin="pipe"'
            raise SandboxError(msg)
        if self._state.input.closed:
            msg = f"the input of process {self.number} was closed"
            raise SandboxError(msg)
        self._check_running()
        return bytes(raw)

    def _check_size(self, rows: int, cols: int) -> dict[str, object]:
        size = check_size(rows, cols)
        if not self.tty:
            msg = f"process {self.number} has no terminal: spawn it with pty=True"
            raise SandboxError(msg)
        self._check_running()
        return {"rows": size[0], "cols": size[1]}

    def _check_running(self) -> None:
        if self._channel.ended is not None:
            msg = (
                f"process {self.number} has ended" if self._follow else f"process {self.number} was attached to with follow=False"
            )
            raise SandboxError(msg)

    def _note(self, infos: list[ProcessInfo]) -> None:
        for info in infos:
            if info.number == self.number:
                self._outcome = info.outcome
                return
        raise ProcessNotFoundError(f"process {self.number} has ended, and sandbox {self._sandbox.id} has forgotten it")

    def _tell(self, exchange: Exchange[None]) -> None:
        if self._outcome is None:
            try:
                self._sandbox._call(exchange)  # noqa: SLF001 - its own package
            except ProcessNotFoundError:
                return  # it has ended, and was forgotten

    async def _atell(self, exchange: Exchange[None]) -> None:
        if self._outcome is None:
            try:
                await self._sandbox._acall(exchange)  # noqa: SLF001 - its own package
            except ProcessNotFoundError:
                return

    def _run(self, operation: Operation[T], timeout: float | None = None) -> T:
        try:
            return _wait.run(operation, timeout)
        except TimeoutError:
            raise TimeoutError(self._runs_on(timeout)) from None

    async def _arun(self, operation: Operation[T], timeout: float | None = None) -> T:  # noqa: ASYNC109 - passed on
        try:
            return await _wait.arun(operation, timeout)
        except TimeoutError:
            if timeout is None:
                raise  # the caller's own
            raise TimeoutError(self._runs_on(timeout)) from None

    def _runs_on(self, timeout: float | None) -> str:
        return f"process {self.number} still runs after {timeout:g} s"


class _Reader:
    """One iteration over a process's output."""

    def __init__(self, process: Process) -> None:
        self._process = process

    def __del__(self) -> None:
        self._process._readers.pop(id(self), None)  # noqa: SLF001 - its own module

    def __iter__(self) -> Self:
        return self

    def __aiter__(self) -> Self:
        return self

    def __next__(self) -> Chunk:
        chunk = self._process._run(self._process._next(self, threading.get_ident()))  # noqa: SLF001
        if chunk is None:
            raise StopIteration
        return chunk

    async def __anext__(self) -> Chunk:
        chunk = await self._process._arun(self._process._next(self, asyncio.current_task()))  # noqa: SLF001
        if chunk is None:
            raise StopAsyncIteration
        return chunk


def check_size(rows: Any, cols: Any) -> tuple[int, int]:  # noqa: ANN401 - checked here
    """The size of a terminal.

    Raises:
        TypeError: If it is no whole numbers.
        ValueError: If no terminal has it.
    """
    size = check_count("rows", rows), check_count("cols", cols)
    if not all(1 <= each <= MAX_CELLS for each in size):
        msg = f"a terminal of {size[0]} rows and {size[1]} columns: each must be from 1 to {MAX_CELLS}"
        raise ValueError(msg)
    return size


def _check_wait(timeout: object) -> float | None:
    if timeout is None:
        return None
    if isinstance(timeout, bool) or not isinstance(timeout, (int, float)):
        raise wrong_type("timeout", timeout, "a number of seconds, or None")
    if not timeout >= 0:
        msg = f"timeout is {timeout!r}: it must not be negative"
        raise ValueError(msg)
    return timeout
