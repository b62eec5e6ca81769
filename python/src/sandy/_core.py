"""The arguments of a sandbox, and how a program runs commands in it and moves files."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from sandy import _exec, _streams
from sandy._arguments import (
    check_flag,
    check_keep,
    check_path,
    check_seconds,
    check_text,
    check_texts,
    encode_command,
    encode_word,
    wrong_type,
)
from sandy._create import check_kept
from sandy._errors import PolicyError, SandboxError, SandboxGoneError
from sandy._exchange import request, start
from sandy._exec import Command, OnOutput, Stdin, encode_env
from sandy._life import DEFAULT_MAX_OUTPUT, DEFAULT_TIMEOUT, Life
from sandy._outcome import Outcome
from sandy._policy import Amount, StrPath, build_limits, build_policy, load_policy
from sandy._questions import OnRequest, answer_requests
from sandy._usage import Usage, to_usage
from sandy._verify import Verification, check_classes, run_verify

if TYPE_CHECKING:
    from sandy._exchange import Exchange
    from sandy._streams import LocalFile

T = TypeVar("T")

_NO_POLICY = b'{"version": 1}'


class SandboxCore(Life):
    """All of a sandbox but the operations of a model, which are in `sandy.Sandbox`."""

    _document: bytes | None = None  # the policy; None where somebody else made the sandbox

    def __init__(
        self,
        *,
        workspace: StrPath | None = None,
        read: Iterable[StrPath] = (),
        write: Iterable[StrPath] = (),
        deny: Iterable[StrPath] = (),
        env: Mapping[str, str] | None = None,
        pass_env: Iterable[str] = (),
        policy: StrPath | Mapping[str, Any] | None = None,
        timeout: float = DEFAULT_TIMEOUT,
        max_output_bytes: int = DEFAULT_MAX_OUTPUT,
        seccomp: str | os.PathLike[str] | Mapping[str, Any] | None = None,
        hostname: str | None = None,
        allow_domains: Iterable[str] | None = None,
        deny_domains: Iterable[str] = (),
        allow_private: Iterable[str] = (),
        publish: Iterable[str] = (),
        on_request: OnRequest | None = None,
        audit: StrPath | None = None,
        memory: Amount | None = None,
        swap: Amount | None = None,
        cpus: Amount | None = None,
        pids: int | None = None,
        io_read: Amount | None = None,
        io_write: Amount | None = None,
        wall_time: Amount | None = None,
        open_files: int | None = None,
        file_size: Amount | None = None,
        tmp_size: Amount | None = None,
        log_size: Amount | None = None,
        best_effort: bool | None = None,
        keep: bool = False,
        name: str | None = None,
        idle_timeout: Amount | None = None,
        id: str | None = None,  # noqa: A002 - as it is called everywhere
    ) -> None:
        """Starts a sandbox.

        Args:
            workspace: A directory to work on in place, writable, seen at `/workspace`. None makes a private, empty one.
            read: Files and directories that can be read, at their own paths.
            write: Files and directories that can be read and written, at their own paths.
            deny: Files and directories that can't be seen, in what the others allow. The most specific rule wins.
            env: Variables to set. This process's environment is not inherited.
            pass_env: Names of variables of this process to pass on, where they are set.
            policy: A policy's name (`"python-data"`; `sandy policy list` has all), a policy file, or a policy as a mapping; the
                other arguments are added to it and must not contradict it. A str of only a-z, 0-9, `-` and `_` is a name: a file
                of such a name is `"./name"`, or a `Path`.
            timeout: Seconds that `execute` and `run` give a command by default; 0 is no limit.
            max_output_bytes: Bytes of output to keep, of each command and stream, up to 67108864 (64 MiB); of more the middle
                is left out.
            seccomp: `"default"`, `"strict"`, the path of a policy file, or an object as in a policy: `{"file": path}`.
            hostname: The host name seen inside.
            allow_domains: What can be reached: names, `*.name`, with `:port`. None is no network; an empty list reaches nothing.
            deny_domains: Exceptions from `allow_domains`.
            allow_private: Single private targets that may be reached, `name:port` or `address:port`; `host.sandy.internal:11434`
                is a server on this machine's loopback.
            publish: Ports inside that this machine can connect to at 127.0.0.1: `"3000"` at a free one (see `published`),
                `"8080:3000"` at port 8080. Alone they allow nothing else.
            on_request: Called with a target (`name:port`) that no rule names and a program wants to connect to, which waits: what
                it returns is `"once"`, `"always"` or `"deny"`. Without `allow_domains` nothing else can be reached. An exception,
                any other value, or no answer within 120 seconds is a denial. It runs in a thread of its own, one call after
                another.
            audit: A file to which each decision about the network is appended, a line of JSON: `time`, `sandbox`, `commands`,
                `verdict`, `target`, `protocol`, `reason`, `address`, and of ended connections `bytes_up`, `bytes_down` and `ms`.
                Keep it where no command can write.
            memory: Memory of all processes together, as `"2G"` or bytes.
            swap: Swap of all processes together.
            cpus: CPU cores, as `1.5`.
            pids: Processes and threads.
            io_read: Bytes read from disks in a second.
            io_write: Bytes written to disks in a second.
            wall_time: Life of the sandbox, as `"10m"` or seconds.
            open_files: Open files of a process.
            file_size: Size of a file.
            tmp_size: Size of `/tmp`, of `/var/tmp`, and of `/dev/shm`.
            log_size: Bytes of output that are kept of each process that was spawned: 1 MiB by default, at most `"256M"`.
            best_effort: Start also where the machine can't enforce a limit that was given; `degraded` then names it.
            keep: Whether it outlives this object and this process: `attach` finds it again, `remove` ends it. It has a server of
                its own.
            name: A name for one that is kept, to be used as its id is: letters, digits, `.`, `_` and `-`.
            idle_timeout: Ends one that is kept when nobody has asked it for anything for so long, as `"30m"` or seconds. Its
                workspace stays.
            id: Goes on with the workspace of a kept one that has stopped, which keeps its id; without other arguments with its
                policy too.

        Raises:
            SandboxStartError: If it can't start on this machine; the text says why and how to fix that. PolicyError, which is
                one, if the policy is not valid.
            TypeError: If an argument has a wrong type.
            ValueError: If an argument contradicts `policy`, or makes no sense.
        """
        self._timeout = check_seconds(timeout)
        self._keep = check_keep(max_output_bytes)
        kept = check_kept(check_flag("keep", keep), name, idle_timeout, id)
        limits: dict[str, Amount | bool | None] = {
            "memory": memory,
            "swap": swap,
            "cpus": cpus,
            "pids": pids,
            "io_read": io_read,
            "io_write": io_write,
            "wall_time": wall_time,
            "open_files": open_files,
            "file_size": file_size,
            "tmp_size": tmp_size,
            "log_size": log_size,
            "best_effort": best_effort,
        }
        base = load_policy(policy)
        if on_request is not None and not callable(on_request):
            raise wrong_type("on_request", on_request, "a callable that takes a str and returns a str")
        document = build_policy(
            base.policy,
            workspace=workspace,
            read=read,
            write=write,
            deny=deny,
            env=env,
            pass_env=pass_env,
            allow_domains=allow_domains,
            deny_domains=deny_domains,
            allow_private=allow_private,
            publish=publish,
            asks=on_request is not None and id is None,
            seccomp=seccomp,
            hostname=hostname,
            limits=limits,
        )
        # What the program is to know of by their places: the policy's file, and the log.
        files = [base.file or b""]
        if audit is not None:
            files.append(os.path.abspath(os.fsencode(check_path("audit", audit))))
        elif not files[0]:
            files.clear()
        resumes_as_it_was = id is not None and document == _NO_POLICY
        self._document = None if resumes_as_it_was else document
        self._begin(() if resumes_as_it_was else (document, *files), kept, asks=on_request is not None)
        if on_request is not None:
            answer_requests(self._serve, self._place.id, on_request)

    # The network.

    def allow_domain(self, *rules: str) -> None:
        """Lets more be reached from now on: names, `*.name`, with `:port`, as in `allow_domains`. It ends an equal denial.

        Raises:
            PolicyError: If a rule is none, or the sandbox has no network (`allow_domains=[]` makes one in which nothing is).
            SandboxError: If the sandbox is closed or gone.
        """
        self._call(self._network("allow", rules))

    def deny_domain(self, *rules: str) -> None:
        """Denies from now on what `allow_domains` or `allow_domain` allowed. What is connected to it is cut.

        Raises:
            PolicyError: If a rule is none, or the sandbox has no network.
            SandboxError: If the sandbox is closed or gone.
        """
        self._call(self._network("deny", rules))

    async def aallow_domain(self, *rules: str) -> None:
        """As `allow_domain`."""
        await self._acall(self._network("allow", rules))

    async def adeny_domain(self, *rules: str) -> None:
        """As `deny_domain`."""
        await self._acall(self._network("deny", rules))

    def _network(self, name: str, rules: tuple[str, ...]) -> Exchange[None]:
        words = tuple(encode_word(f"rules[{at}]", rule) for at, rule in enumerate(check_texts("rules", rules)))
        reply = yield from request(start("network", words, sandbox=self._place.id, list=name))
        if reply.error == "policy":
            raise PolicyError.from_text(reply.detail)
        if reply.error is not None:
            raise SandboxGoneError(_exec.error_sentence(reply))

    # Limits.

    def set_limits(
        self,
        *,
        memory: Amount | None = None,
        swap: Amount | None = None,
        cpus: Amount | None = None,
        pids: int | None = None,
        io_read: Amount | None = None,
        io_write: Amount | None = None,
    ) -> None:
        """Other limits from now on; those that are not given stay. The values are those of `Sandbox()`.

        Less memory than it uses makes the kernel take back what it can, and then kill processes.

        Raises:
            PolicyError: If a value is wrong, or this machine can't enforce it.
            SandboxError: If the sandbox is closed or gone.
            TypeError: If a value has a wrong type.
        """
        given = {"memory": memory, "swap": swap, "cpus": cpus, "pids": pids, "io_read": io_read, "io_write": io_write}
        self._call(self._limits(build_limits(given)))

    async def aset_limits(
        self,
        *,
        memory: Amount | None = None,
        swap: Amount | None = None,
        cpus: Amount | None = None,
        pids: int | None = None,
        io_read: Amount | None = None,
        io_write: Amount | None = None,
    ) -> None:
        """As `set_limits`."""
        given = {"memory": memory, "swap": swap, "cpus": cpus, "pids": pids, "io_read": io_read, "io_write": io_write}
        await self._acall(self._limits(build_limits(given)))

    def stats(self) -> Usage:
        """What it uses now, and has used.

        Raises:
            SandboxError: If the sandbox is closed or gone, or has no control group that counts.
        """
        return self._call(self._stats())

    async def astats(self) -> Usage:
        """As `stats`."""
        return await self._acall(self._stats())

    def _limits(self, document: bytes) -> Exchange[None]:
        reply = yield from request(start("limits", (document,), sandbox=self._place.id))
        if reply.error == "policy":
            raise PolicyError.from_text(reply.detail)
        if reply.error is not None:
            raise SandboxGoneError(_exec.error_sentence(reply))

    def _stats(self) -> Exchange[Usage]:
        reply = yield from request(start("stats", sandbox=self._place.id))
        if reply.error == "no_cgroup":
            msg = f"{reply.detail}\nhint: sandy doctor says what gives this machine control groups"
            raise SandboxError(msg)
        if reply.error is not None:
            raise SandboxGoneError(_exec.error_sentence(reply))
        return to_usage(reply)

    # The attack suite.

    def verify(self, *, classes: Iterable[str] = ()) -> Verification:
        """Attacks sandboxes of this one's policy on this machine, and says what was refused: `sandy verify`.

        This sandbox is left alone: the attacks are on fresh ones with the policy that it was made with, without what was changed
        since (`allow_domain`, `set_limits`). Each is tried outside a sandbox too, on harmless things that are made for it. It
        takes some seconds.

        Args:
            classes: Only attacks of these classes: `network`, `sockets`, `syscalls`, `files`, `processes`, `host-side`, `limits`.

        Raises:
            SandboxError: If this sandbox's policy isn't known here, since it was attached to, or gone on with by its id alone;
                SandboxStartError, which is one, if no sandbox can be started.
            TypeError: If `classes` has a wrong type.
            ValueError: If there is no such class.
        """
        return run_verify(self._known_document(), check_classes(classes))

    async def averify(self, *, classes: Iterable[str] = ()) -> Verification:
        """As `verify`, in a thread."""
        return await asyncio.to_thread(run_verify, self._known_document(), check_classes(classes))

    def _known_document(self) -> bytes:
        if self._document is None:
            msg = (
                "verify(): the policy of a sandbox that somebody else made isn't known here\n"
                "hint: sandy verify --policy FILE needs no sandbox"
            )
            raise SandboxError(msg)
        return self._document

    # Commands and files, for programs.

    def run(
        self,
        command: str | Sequence[str],
        *,
        stdin: Stdin = None,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        timeout: float | None = None,
        max_output_bytes: int | None = None,
        merge: bool = False,
        on_output: OnOutput | None = None,
    ) -> Outcome:
        """Runs a command and tells apart all that can become of it.

        Args:
            command: A program with its arguments, or a shell command line.
            stdin: What it reads: bytes, text, a binary file object, or an iterable of bytes. None is nothing.
            cwd: Its working directory; None is the workspace, `~` the home.
            env: Variables to set for it.
            timeout: Seconds; None is the sandbox's default, 0 is no limit.
            max_output_bytes: Bytes to keep of each stream, up to 67108864 (64 MiB); None is the sandbox's default.
            merge: Whether standard error goes into standard output, in the order in which they are written.
            on_output: Gets the output as it comes, as `on_output("stdout", b"...")`; none is kept then, and none is left out.

        Raises:
            SandboxError: If the sandbox is closed or gone.
            TypeError: If an argument has a wrong type, also a piece of `stdin`.
            ValueError: If an argument makes no sense.

        Whatever ends the call early (an exception of `stdin` or `on_output`, KeyboardInterrupt) kills the command with all that
        it started.
        """
        made = self._command(command, stdin, cwd, env, timeout, max_output_bytes, merge=merge, on_output=on_output)
        return _exec.to_outcome(self._call(_exec.run_command(self._place.id, made)), self._degraded)

    async def arun(
        self,
        command: str | Sequence[str],
        *,
        stdin: Stdin = None,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 - the agent's limit, which also kills; asyncio's would not
        max_output_bytes: int | None = None,
        merge: bool = False,
        on_output: OnOutput | None = None,
    ) -> Outcome:
        """As `run`. When the task is cancelled, the command and all that it started are killed."""
        made = self._command(command, stdin, cwd, env, timeout, max_output_bytes, merge=merge, on_output=on_output)
        return _exec.to_outcome(await self._acall(_exec.run_command(self._place.id, made)), self._degraded)

    def upload(self, local: LocalFile, remote: str) -> int:
        """Uploads one file of any size in constant memory.

        Args:
            local: A path, whose permission bits are kept, or a binary file object.
            remote: Where it goes; it appears there whole or not at all. `~/` is the home in the sandbox, here and below.

        Returns:
            The number of bytes.

        Raises:
            SandboxFileError: If the sandbox refuses it.
            SandboxError: If the sandbox is closed or gone.
            OSError: If the local file can't be read.
        """
        return self._call(_streams.upload(self._place, local, remote))

    async def aupload(self, local: LocalFile, remote: str) -> int:
        """As `upload`; the local file is read in the event loop, a quarter of a megabyte at a time."""
        return await self._acall(_streams.upload(self._place, local, remote))

    def download(self, remote: str, local: LocalFile, *, max_bytes: int | None = None) -> int:
        """Downloads one file of any size in constant memory.

        Args:
            remote: The file in the sandbox. What is no regular file is refused.
            local: A path, where it appears whole or not at all, or a binary file object.
            max_bytes: Refuse a larger file.

        Returns:
            The number of bytes.

        Raises:
            SandboxFileError: If the sandbox refuses it.
            SandboxError: If the sandbox is closed or gone.
            OSError: If the local file can't be written. A directory, or what is no regular file, is refused before anything is
                fetched.
        """
        return self._call(_streams.download(self._place, remote, local, max_bytes))

    async def adownload(self, remote: str, local: LocalFile, *, max_bytes: int | None = None) -> int:
        """As `download`; the local file is written in the event loop, a quarter of a megabyte at a time."""
        return await self._acall(_streams.download(self._place, remote, local, max_bytes))

    # For subclasses.

    def _limit(self, timeout: float | None) -> float:
        return self._timeout if timeout is None else check_seconds(timeout)

    def _command(
        self,
        command: str | Sequence[str],
        stdin: Stdin,
        cwd: str | None,
        env: Mapping[str, str] | None,
        timeout: float | None,
        max_output_bytes: int | None,
        *,
        merge: bool,
        on_output: OnOutput | None,
    ) -> Command:
        if on_output is not None and not callable(on_output):
            raise wrong_type("on_output", on_output, 'a callable that takes ("stdout" or "stderr", bytes)')
        return Command(
            argv=encode_command(command),
            shell=isinstance(command, str),
            timeout=self._limit(timeout),
            keep=self._keep if max_output_bytes is None else check_keep(max_output_bytes),
            merge=check_flag("merge", merge),
            cwd=b"" if cwd is None else encode_word("cwd", self._place.expand(check_text("cwd", cwd, "a str or None"))),
            env=encode_env(env),
            stdin=stdin,
            on_output=on_output,
        )
