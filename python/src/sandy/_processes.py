"""The part of a sandbox that starts processes which go on by themselves, and finds them again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from sandy import _process_requests, _wait
from sandy._arguments import (
    check_count,
    check_flag,
    check_seconds,
    check_text,
    encode_command,
    encode_text,
    encode_word,
    wrong_type,
)
from sandy._connected import Connected
from sandy._errors import SandboxError
from sandy._exec import encode_env
from sandy._process_requests import LogReader, Spawn
from sandy._shell import START_PATIENCE, Shell
from sandy._shell_script import START
from sandy._spawned import Process, check_size

if TYPE_CHECKING:
    from sandy._chunk import Log
    from sandy._exchange import Exchange
    from sandy._process_info import ProcessInfo
    from sandy._process_requests import Opened

T = TypeVar("T")

SpawnStdin: TypeAlias = bytes | bytearray | memoryview | str | None
"""`"pipe"`, or the data."""
Pty: TypeAlias = bool | tuple[int, int]

DEFAULT_SIZE = (24, 80)


class Processes(Connected):
    """The methods of a sandbox about processes that go on without the call that started them."""

    def spawn(
        self,
        command: str | Sequence[str],
        *,
        pty: Pty = False,
        stdin: SpawnStdin = None,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        merge: bool = True,
        timeout: float | None = None,
    ) -> Process:
        """Starts a process and returns at once: a server, a watcher, a program to talk with.

        It goes on when the `Process` is closed or collected; its last output is kept (`log_size` of the sandbox), and
        `process` and `read_log` find it again by its number.

        Args:
            command: A program with its arguments, or a shell command line.
            pty: Gives it a terminal: True is one of 24 rows and 80 columns, `(rows, columns)` another. It has one output then.
            stdin: What it reads. None is nothing; `"pipe"` is what `Process.write` gives it; bytes or a text (the word "pipe" as
                bytes) are all there is. Of more than 1 MiB the rest is sent while somebody iterates or waits.
            cwd: Its working directory; None is the workspace, `~` the home.
            env: Variables to set for it.
            merge: Whether standard error goes into standard output, in the order in which they are written.
            timeout: Seconds after which it is killed with all that it started; None and 0 are no limit.

        Raises:
            CommandNotStartedError: If there is no such program or working directory. A shell command line always starts.
            SandboxError: If the sandbox is closed or gone.
            TypeError: If an argument has a wrong type.
            ValueError: If an argument makes no sense.
        """
        made, words, data = self._spawn(command, pty, stdin, cwd, env, timeout, merge=merge)
        self._check_open()
        held, opened = self._serve.hold(_process_requests.spawn(self.id, made, words), cancel=True)
        process = Process(self, held, opened, stdin=stdin == "pipe" or made.tty is not None)
        try:
            _wait.run(process.feed(data))
        except BaseException:
            process.abort()
            raise
        return process

    async def aspawn(
        self,
        command: str | Sequence[str],
        *,
        pty: Pty = False,
        stdin: SpawnStdin = None,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        merge: bool = True,
        timeout: float | None = None,  # noqa: ASYNC109 - of the process, not of this call
    ) -> Process:
        """As `spawn`. When the task is cancelled before it returns, the process is killed."""
        made, words, data = self._spawn(command, pty, stdin, cwd, env, timeout, merge=merge)
        self._check_open()
        held, opened = await self._serve.ahold(_process_requests.spawn(self.id, made, words), cancel=True)
        process = Process(self, held, opened, stdin=stdin == "pipe" or made.tty is not None)
        try:
            await _wait.arun(process.feed(data))
        except BaseException:
            process.abort()
            raise
        return process

    def list_processes(self) -> list[ProcessInfo]:
        """The processes that were spawned, by number: those that run, and the last 64 that have ended.

        Raises:
            SandboxError: If the sandbox is closed or gone.
        """
        return self._call(_process_requests.list_processes(self.id, self._degraded))

    async def alist_processes(self) -> list[ProcessInfo]:
        """As `list_processes`."""
        return await self._acall(_process_requests.list_processes(self.id, self._degraded))

    def process(self, number: int, *, offset: int | None = None, follow: bool = True, hold: bool = False) -> Process:
        """Attaches to a process again, also to one that somebody else is attached to.

        Args:
            number: Its number.
            offset: Where its output begins; None is the oldest that is kept.
            follow: Whether the output goes on until the process ends; False: until what there is now was read.
            hold: Whether the process waits while its output isn't read; False: what isn't read in time is lost, and counted in
                `Process.lost`.

        Raises:
            ProcessNotFoundError: If there is none of that number.
            SandboxError: If the sandbox is closed or gone.
        """
        exchange = self._attach(number, offset, follow=follow, hold=hold)
        self._check_open()
        return Process(self, *self._serve.hold(exchange, cancel=False), stdin=True, follow=follow)

    async def aprocess(self, number: int, *, offset: int | None = None, follow: bool = True, hold: bool = False) -> Process:
        """As `process`."""
        exchange = self._attach(number, offset, follow=follow, hold=hold)
        self._check_open()
        return Process(self, *await self._serve.ahold(exchange, cancel=False), stdin=True, follow=follow)

    def read_log(self, number: int, offset: int | None = 0, limit: int | None = None) -> Log:
        """Reads what is kept of a process's output, whether it runs or not, and waits for nothing.

        Args:
            number: The process's number.
            offset: Where to begin: bytes of both outputs since its start. None is the oldest that is kept.
            limit: Bytes to read at most; None is all.

        Raises:
            ProcessNotFoundError: If there is none of that number.
            SandboxError: If the sandbox is closed or gone.
        """
        reader = self._log_reader(number, offset, limit)
        self._check_open()
        held, log = self._serve.hold(reader.read(), cancel=False)
        if reader.finished:
            self._serve.give(held)
        else:
            held.close()
        return log

    async def aread_log(self, number: int, offset: int | None = 0, limit: int | None = None) -> Log:
        """As `read_log`."""
        reader = self._log_reader(number, offset, limit)
        self._check_open()
        held, log = await self._serve.ahold(reader.read(), cancel=False)
        if reader.finished:
            self._serve.give(held)
        else:
            held.close()
        return log

    def shell(self, *, cwd: str | None = None, env: Mapping[str, str] | None = None) -> Shell:
        """Starts a shell that keeps its directory, variables and functions from one command to the next.

        Args:
            cwd: Its working directory at first; None is the workspace, `~` the home.
            env: Variables to set for it.

        Raises:
            SandboxError: If it does not start, or the sandbox is closed or gone.
        """
        process = self.spawn(["sh", "-c", START], stdin="pipe", merge=False, cwd=cwd, env=env)
        try:
            shell = Shell(process, timeout=self._timeout, keep=self._keep)
            _wait.run(shell.start(), START_PATIENCE)
        except TimeoutError:
            process.abort()
            msg = f"the shell did not start within {START_PATIENCE:g} s"
            raise SandboxError(msg) from None
        except BaseException:
            process.abort()
            raise
        return shell

    async def ashell(self, *, cwd: str | None = None, env: Mapping[str, str] | None = None) -> Shell:
        """As `shell`."""
        process = await self.aspawn(["sh", "-c", START], stdin="pipe", merge=False, cwd=cwd, env=env)
        try:
            shell = Shell(process, timeout=self._timeout, keep=self._keep)
            await _wait.arun(shell.start(), START_PATIENCE)
        except TimeoutError:
            process.abort()
            msg = f"the shell did not start within {START_PATIENCE:g} s"
            raise SandboxError(msg) from None
        except BaseException:
            process.abort()
            raise
        return shell

    def _spawn(
        self,
        command: str | Sequence[str],
        pty: Pty,
        stdin: SpawnStdin,
        cwd: str | None,
        env: Mapping[str, str] | None,
        timeout: float | None,
        *,
        merge: bool,
    ) -> tuple[Spawn, tuple[str, ...], bytes | None]:
        """The process to start, the words to show for it, and what to write to it."""
        argv = encode_command(command)
        data = _check_stdin(stdin)
        tty = _check_pty(pty)
        if tty is not None and data is not None:
            msg = "stdin: a process with a terminal reads that; write to it after the start"
            raise ValueError(msg)
        made = Spawn(
            argv=argv,
            shell=isinstance(command, str),
            timeout=0 if timeout is None else check_seconds(timeout),
            cwd=b"" if cwd is None else encode_word("cwd", self._place.expand(check_text("cwd", cwd, "a str or None"))),
            env=encode_env(env),
            pipe=stdin is not None,
            merge=check_flag("merge", merge),
            tty=tty,
        )
        return made, (command,) if isinstance(command, str) else tuple(command), data

    def _attach(self, number: int, offset: int | None, *, follow: bool, hold: bool) -> Exchange[Opened]:
        return _process_requests.attach(
            self.id,
            check_count("number", number, "a process's number"),
            _check_offset("offset", offset),
            follow=check_flag("follow", follow),
            hold=check_flag("hold", hold),
        )

    def _log_reader(self, number: int, offset: int | None, limit: int | None) -> LogReader:
        return LogReader(
            self.id,
            check_count("number", number, "a process's number"),
            _check_offset("offset", offset),
            _check_offset("limit", limit),
        )


def _check_offset(name: str, value: object) -> int | None:
    if value is None:
        return None
    count = check_count(name, value, "a number of bytes, as an int, or None")
    if count < 0:
        msg = f"{name} is {count}: it must not be negative"
        raise ValueError(msg)
    return count


def _check_stdin(stdin: object) -> bytes | None:
    """What a process is to read; None where that comes later, or never."""
    if stdin is None or stdin == "pipe":
        return None
    if isinstance(stdin, str):
        return encode_text("stdin", stdin)
    if isinstance(stdin, (bytes, bytearray, memoryview)):
        return bytes(stdin)
    raise wrong_type("stdin", stdin, 'None, "pipe", bytes, or a str')


def _check_pty(pty: object) -> tuple[int, int] | None:
    if isinstance(pty, bool):
        return DEFAULT_SIZE if pty else None
    if not isinstance(pty, tuple) or len(pty) != len(DEFAULT_SIZE):
        raise wrong_type("pty", pty, "True, False, or (rows, columns)")
    return check_size(*pty)
