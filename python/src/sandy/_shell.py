"""A shell that keeps its state between commands."""

# ruff: noqa: SLF001
# It is of the same package as its process and its sandbox, and uses what is not for users.

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from sandy import _process_requests, _shell_script, _wait
from sandy._arguments import check_keep, check_seconds, check_text, encode_word, wrong_type
from sandy._closing import Closing
from sandy._errors import SandboxError, ShellEndedError
from sandy._exec import Command, run_command
from sandy._kept_output import KeptOutput
from sandy._outcome import TIMED_OUT, Outcome

if TYPE_CHECKING:
    from sandy._chunk import Chunk
    from sandy._exchange import Exchange
    from sandy._exec import Ended, OnOutput
    from sandy._server import Server
    from sandy._spawned import Process
    from sandy._wait import Operation

START_PATIENCE: Final = 30.0
"""Seconds after which a shell that says nothing is given up."""
GRACE: Final = 2.0
"""Seconds that a command has to end after SIGINT."""
TRIES: Final = 2
"""How often it gets that: one that comes while the shell starts a process reaches neither."""


class _Run:
    """A command in a shell, from its line to the last of its output."""

    def __init__(self, keep: int, on_output: OnOutput | None) -> None:
        self.begin, self.end = _shell_script.new_name(), _shell_script.new_name()
        self.output = KeptOutput(keep)
        self.on_output = on_output
        self.status: int | None = None
        self.started = time.monotonic()
        self.drained: int | None = None  # how many `drained` events say that all its output has come

    def outcome(self, degraded: tuple[str, ...]) -> Outcome:
        self.output.fold()
        return Outcome(
            reason="exited",
            exit_code=self.status or 0,
            stdout=self.output.join(),
            stdout_omitted=self.output.omitted,
            wall_time=time.monotonic() - self.started,
            degraded=degraded,
        )


class Shell(Closing):
    r"""A shell whose directory, variables, functions, aliases and options stay from one `run` to the next.

    `Sandbox.shell` makes it: bash where the sandbox has that, and sh otherwise, interactive but without a terminal. Commands read
    nothing, and have standard error in their output. How one ends is told apart from its output, which may be anything. What is
    left in the background goes on, and what that writes later comes with the next run. Calls of several threads or tasks wait for
    each other.

    Redirections of standard input and standard error that are to last (`exec 2>file`) end with the run. What the network refuses
    is not told with the outcome of a run.

    A command can take the shell itself from under the next ones, which then do nothing, or run into their time limits: with a
    function named `builtin` (in sh `command`), with `enable -n builtin` or `enable -n eval`, with a trap of DEBUG under
    `shopt -s extdebug` that skips every command, or with so many processes that the shell can start none (`limits.processes`;
    a fork bomb). What is theirs alone, a new shell has not.

    Example:
        >>> from sandy import Sandbox
        >>> with Sandbox() as sandbox, sandbox.shell() as shell:
        ...     shell.run("cd /tmp; name=x").exit_code
        ...     shell.run("echo $PWD $name").stdout
        0
        b'/tmp x\n'
    """

    def __init__(self, process: Process, *, timeout: float, keep: int) -> None:
        """Not for users: takes over the process of a new shell."""
        self._process = process
        self._timeout = timeout
        self._keep = keep
        self._messages = _shell_script.Messages()
        self._descriptor = 0
        self._status = 0
        self._unfinished: _Run | None = None
        self._interrupted: _wait.Parked | None = None  # an interrupt in the background
        self._over: str | None = None
        self._lock = threading.RLock()  # a signal handler may use it while the interrupted code does
        self._busy = False
        self._waiting = _wait.Lot(self._lock)
        self._drains = 0
        process._readers[0] = "a shell"  # so that nobody's wait() drops its output
        # At exit the server's end takes all at once.
        self._finalizer = weakref.finalize(
            self, _kill_in_background, process._sandbox._serve, process._sandbox.id, process.number
        )
        self._finalizer.atexit = False

    @property
    def process(self) -> Process:
        """The shell itself: for its number and its log. Its input and output are this object's."""
        return self._process

    @property
    def ended(self) -> bool:
        """Whether it runs no more commands."""
        return self._over is not None

    def __repr__(self) -> str:
        """Names the sandbox and the shell's process."""
        return f"<sandy.Shell {self._process.number} of {self._process._sandbox.id}{' ended' if self.ended else ''}>"

    def run(
        self,
        command: str,
        *,
        timeout: float | None = None,
        max_output_bytes: int | None = None,
        on_output: OnOutput | None = None,
    ) -> Outcome:
        """Runs a command line, of any length and number of lines.

        Args:
            command: What to run.
            timeout: Seconds; None is the sandbox's default, 0 is no limit. A command that takes longer gets SIGINT, as by Ctrl-C,
                and when it has not ended 2 s after that, the shell is killed with all that it started.
            max_output_bytes: Bytes to keep of the output; None is the sandbox's default.
            on_output: Gets the output also as it comes.

        Returns:
            The exit status as the shell has it in `$?`, and standard output and error together in `stdout`. After a time limit
            the reason is `timed_out`. Where the command ended the shell (`exit`, a failure under `set -e`, `exec`, a kill): how
            that ended.

        Raises:
            ShellEndedError: If the shell has ended before.
            SandboxError: If the sandbox is closed or gone.
            TypeError: If an argument has a wrong type.
            ValueError: If the command has a NUL.

        Whatever else ends the call early (an exception of `on_output`, KeyboardInterrupt) interrupts the command.
        """
        line, run, seconds = self._prepare(command, timeout, max_output_bytes, on_output)
        _wait.run(self._take_turn())
        try:
            self._settle()
            self._check()
            self._unfinished = run
            try:
                _wait.run(self._execute(run, line), seconds)
                return self._finish(run)
            except TimeoutError:
                self._interrupt_or_kill(run)
                return self._finish(run, timed_out=True)
            except BaseException:
                self._interrupt_in_background()
                raise
        finally:
            self._give_turn()

    async def arun(
        self,
        command: str,
        *,
        timeout: float | None = None,  # noqa: ASYNC109 - the command's, which also interrupts it
        max_output_bytes: int | None = None,
        on_output: OnOutput | None = None,
    ) -> Outcome:
        """As `run`. When the task is cancelled, the command is interrupted."""
        line, run, seconds = self._prepare(command, timeout, max_output_bytes, on_output)
        await _wait.arun(self._take_turn())
        try:
            await self._asettle()
            self._check()
            self._unfinished = run
            try:
                try:
                    await _wait.arun(self._execute(run, line), seconds)
                    return self._finish(run)
                except TimeoutError:
                    await self._ainterrupt_or_kill(run)
                    return self._finish(run, timed_out=True)
            except BaseException:
                self._interrupt_in_background()
                raise
        finally:
            self._give_turn()

    def close(self) -> None:
        """Kills it with all that it started. May be called again."""
        if self._finalizer.detach() is None:
            return
        self._over = self._over or "it was closed"
        try:
            self._process.kill()
        except SandboxError:
            return  # the sandbox is gone, and the shell with it
        finally:
            self._process.close()

    async def aclose(self) -> None:
        """As `close`."""
        if self._finalizer.detach() is None:
            return
        self._over = self._over or "it was closed"
        try:
            await self._process.akill()
        except SandboxError:
            return
        finally:
            self._process.close()

    # Within the package.

    def start(self) -> Operation[None]:
        """Not for users: waits until it takes commands.

        Raises:
            SandboxError: If it doesn't.
        """
        run = _Run(0, None)
        yield from self._process._write(_shell_script.prelude(run.begin))
        if not (yield from self._read(run, lambda: self._heard(run.begin))):
            msg = "the shell ended when it started"
            raise SandboxError(msg)
        self._descriptor = self._told

    _told = 0  # the last message's number

    def _prepare(
        self, command: str, timeout: float | None, max_output_bytes: int | None, on_output: OnOutput | None
    ) -> tuple[bytes, _Run, float | None]:
        raw = encode_word("command", check_text("command", command, "a str: a shell command line"))
        seconds = self._timeout if timeout is None else check_seconds(timeout)
        keep = self._keep if max_output_bytes is None else check_keep(max_output_bytes)
        if on_output is not None and not callable(on_output):
            raise wrong_type("on_output", on_output, 'a callable that takes ("stdout", bytes)')
        return raw, _Run(keep, on_output), seconds or None

    def _check(self) -> None:
        if self._over is not None:
            msg = f"the shell has ended: {self._over}. Sandbox.shell() makes another one"
            raise ShellEndedError(msg)

    def _execute(self, run: _Run, command: bytes) -> Operation[None]:
        run.started = time.monotonic()
        yield from self._process._write(_shell_script.begin(run.begin, self._descriptor, command, self._status))
        if (yield from self._read(run, lambda: self._heard(run.begin))):
            yield from self._process._write(_shell_script.end(run.end, self._descriptor))
            yield from self._until_end(run)

    def _until_end(self, run: _Run) -> Operation[None]:
        """Waits for the message of a command's end, and then for the last of its output."""
        state, channel = self._process._state, self._process._channel
        if run.status is None:
            if not (yield from self._read(run, lambda: self._heard(run.end))):
                return
            run.status = self._told
        if run.drained is None:
            # What it has written is in the pipe, though maybe not here.
            self._drains += 1
            run.drained = self._drains
            channel.post({"op": "drain"})
        wanted = run.drained
        yield from self._read(run, lambda: state.drained >= wanted)

    def _heard(self, name: str) -> bool:
        told = self._messages.find(name)
        if told is not None:
            self._told = told
        return told is not None

    def _read(self, run: _Run, done: Callable[[], bool]) -> Operation[bool]:
        """Takes output until `done`, asked after each piece; False if the shell ended first."""
        state, channel = self._process._state, self._process._channel
        finished = False
        while not finished:
            drained = state.drained
            yield from channel.receive_until(lambda: bool(state.chunks) or state.drained != drained)  # noqa: B023 - used up at once
            with channel.lock:
                chunks: list[Chunk] = []
                while state.chunks:
                    chunks.append(state.take(channel))
                ended = channel.ended is not None
            for chunk in chunks:
                self._take(run, chunk)
            finished = done()
            if ended and not finished:
                return False
        return True

    def _take(self, run: _Run, chunk: Chunk) -> None:
        if chunk.stream == "stderr":
            self._messages.hear(chunk)
            return
        run.output.keep(chunk)
        if run.on_output is not None:
            run.on_output("stdout", bytes(chunk))

    def _finish(self, run: _Run, *, timed_out: bool = False) -> Outcome:
        self._unfinished = None
        outcome = run.outcome(self._process._sandbox.degraded)
        if run.status is None:
            end = self._process._ended()
            self._over = (
                end.detail or f"{end.reason} with status {end.exit_code}"
                if not timed_out
                else "a command outlived its time limit"
            )
            outcome = replace(end, stdout=outcome.stdout, stdout_omitted=outcome.stdout_omitted, wall_time=outcome.wall_time)
        else:
            self._status = run.status
        return replace(outcome, reason="timed_out", exit_code=TIMED_OUT, signal=None) if timed_out else outcome

    # A command that is to end.

    def _interrupt(self) -> Exchange[Ended]:
        """What Ctrl-C at a terminal does: SIGINT for the shell's process group, in which background jobs ignore it."""
        line = f"kill -s INT -- -{self._process.pid}".encode()
        return run_command(self._process._sandbox.id, Command((line,), True, GRACE, 0))

    def _interrupt_in_background(self) -> None:
        """Does it without waiting; the next run waits for it, so that it does not reach that one's command."""
        parked = _wait.Parked()

        def interrupt() -> Exchange[Ended]:
            try:
                return (yield from self._interrupt())
            finally:
                parked.wake()

        self._interrupted = parked
        self._process._sandbox._serve.in_background(interrupt)

    def _await_background(self) -> Operation[None]:
        if self._interrupted is not None:
            yield self._interrupted
            self._interrupted = None

    def _await_interrupted(self, run: _Run) -> Operation[None]:
        """Waits for the end of a command that was interrupted, whatever of its lines the shell has thrown away."""
        if run.status is None:
            yield from self._process._write(b"\n" + _shell_script.end(run.end, self._descriptor))
        yield from self._until_end(run)

    def _interrupt_or_kill(self, run: _Run) -> None:
        for _ in range(TRIES):
            try:
                if self._interrupted is None:
                    self._process._sandbox._call(self._interrupt())
                else:
                    _wait.run(self._await_background(), GRACE)
                return _wait.run(self._await_interrupted(run), GRACE / TRIES)
            except TimeoutError:
                continue
        self._process.kill()
        return _wait.run(self._read_all(run), START_PATIENCE)

    async def _ainterrupt_or_kill(self, run: _Run) -> None:
        for _ in range(TRIES):
            try:
                if self._interrupted is None:
                    await self._process._sandbox._acall(self._interrupt())
                else:
                    await _wait.arun(self._await_background(), GRACE)
                return await _wait.arun(self._await_interrupted(run), GRACE / TRIES)
            except TimeoutError:
                continue
        await self._process.akill()
        return await _wait.arun(self._read_all(run), START_PATIENCE)

    def _read_all(self, run: _Run) -> Operation[None]:
        yield from self._read(run, lambda: False)

    def _settle(self) -> None:
        """Waits for the end of a command whose caller was interrupted."""
        run = self._unfinished
        if run is not None and self._over is None:
            run.on_output = None
            self._interrupt_or_kill(run)
            self._finish(run, timed_out=run.status is None)

    async def _asettle(self) -> None:
        run = self._unfinished
        if run is not None and self._over is None:
            run.on_output = None
            await self._ainterrupt_or_kill(run)
            self._finish(run, timed_out=run.status is None)

    # One at a time.

    def _take_turn(self) -> Operation[None]:
        self._process._channel.check_process()
        while True:
            with self._lock:
                if not self._busy:
                    self._busy = True
                    return
                parked = self._waiting.park()
            yield from self._waiting.wait(parked)

    def _give_turn(self) -> None:
        with self._lock:
            self._busy = False
            self._waiting.wake()


def _kill_in_background(serve: Server, sandbox: str, number: int) -> None:
    serve.in_background(lambda: _process_requests.kill(sandbox, number))
