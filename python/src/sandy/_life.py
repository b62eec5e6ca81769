"""The part of a sandbox about its life: what it is, how it ends, and how one that is kept is found again."""

from __future__ import annotations

import asyncio
import builtins
import contextlib
import weakref
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, Self

from sandy import _kept_server
from sandy._arguments import check_keep, check_seconds, check_text
from sandy._closing import Closing
from sandy._create import Keep, create, create_kept, describe
from sandy._errors import SandboxError, SandboxGoneError
from sandy._exchange import request, start
from sandy._processes import Processes
from sandy._sandbox_info import SandboxInfo, to_time

if TYPE_CHECKING:
    from sandy._create import Created
    from sandy._server import Server

DEFAULT_TIMEOUT: Final = 30 * 60
DEFAULT_MAX_OUTPUT: Final = 1_048_576


class Life(Processes, Closing):
    """A sandbox's beginning and end."""

    _published: Mapping[int, int]
    _kept: bool
    _name: str
    _finalizer: weakref.finalize[Any, Any]

    # What it is.

    @property
    def workspace(self) -> str:
        """Where the workspace is inside: the working directory of commands."""
        return self._place.workspace

    @property
    def home(self) -> str:
        """The home directory inside."""
        return self._place.home

    @property
    def published(self) -> Mapping[int, int]:
        """Where this machine has what `publish` names, at 127.0.0.1: `{3000: 49152}`."""
        return self._published

    @property
    def kept(self) -> bool:
        """Whether it outlives this object, and this process."""
        return self._kept

    @property
    def name(self) -> str:
        """The name that a kept one was given; else empty."""
        return self._name

    @property
    def closed(self) -> bool:
        """Whether `close` was called, or `stop` or `remove`."""
        return self._closed

    def __repr__(self) -> str:
        """Names the class, the sandbox, and whether it is closed."""
        return f"<{type(self).__module__}.{type(self).__qualname__} {self._place.id}{' closed' if self._closed else ''}>"

    # How it ends.

    def close(self) -> None:
        """Ends every process in it and removes its private files; lets go of one that is kept. May be called again."""
        if not self._let_go():
            return
        with contextlib.suppress(SandboxGoneError):  # what is gone is closed
            self._serve.run(request(start("close", sandbox=self._place.id)))

    async def aclose(self) -> None:
        """As `close`."""
        if not self._let_go():
            return
        with contextlib.suppress(SandboxGoneError):
            await self._serve.arun(request(start("close", sandbox=self._place.id)))

    def stop(self) -> None:
        """Ends every process in a kept sandbox; its workspace stays, and `Sandbox(id=…)` goes on with it.

        Raises:
            SandboxError: If it is not kept, or closed or gone.
        """
        self._check_kept("stop")
        self._call(request(start("close", sandbox=self._place.id, stop=True)))
        self.close()

    async def astop(self) -> None:
        """As `stop`."""
        self._check_kept("stop")
        await self._acall(request(start("close", sandbox=self._place.id, stop=True)))
        self.close()

    def remove(self) -> None:
        """Ends a kept sandbox, and removes its private files and its workspace, if that is a private one.

        Raises:
            SandboxError: If it is not kept, or closed or gone.
        """
        self._check_kept("remove")
        self._call(request(start("close", sandbox=self._place.id)))
        self.close()

    async def aremove(self) -> None:
        """As `remove`."""
        self._check_kept("remove")
        await self._acall(request(start("close", sandbox=self._place.id)))
        self.close()

    # Those that are kept.

    @classmethod
    def attach(cls, id_or_name: str, *, timeout: float = DEFAULT_TIMEOUT, max_output_bytes: int = DEFAULT_MAX_OUTPUT) -> Self:
        """A kept sandbox that runs, from any process of the user who made it.

        Args:
            id_or_name: Its id, or its name.
            timeout: As for `Sandbox`.
            max_output_bytes: As for `Sandbox`.

        Raises:
            SandboxError: If there is none, or it has stopped.
        """
        self = cls.__new__(cls)
        self._timeout = check_seconds(timeout)
        self._keep = check_keep(max_output_bytes)
        entry = _kept_server.find(check_text("id_or_name", id_or_name))
        server = _kept_server.KeptServer(entry.id, entry.socket)
        try:
            created = describe(server, entry.id)
        except BaseException:
            server.shut_down()
            raise
        self._adopt(server, created, kept=True, name=entry.name)
        return self

    @classmethod
    async def aattach(
        cls,
        id_or_name: str,
        *,
        timeout: float = DEFAULT_TIMEOUT,  # noqa: ASYNC109 - of commands
        max_output_bytes: int = DEFAULT_MAX_OUTPUT,
    ) -> Self:
        """As `attach`, in a thread."""
        return await asyncio.to_thread(cls.attach, id_or_name, timeout=timeout, max_output_bytes=max_output_bytes)

    @staticmethod
    def list() -> builtins.list[SandboxInfo]:
        """The kept sandboxes of this user, oldest first, also those that have stopped.

        Raises:
            SandboxError: If they can't be listed.
        """
        return [
            SandboxInfo(entry.id, entry.name, entry.running, to_time(entry.created_ms), entry.idle_ms / 1000 or None)
            for entry in _kept_server.entries()
        ]

    @staticmethod
    async def alist() -> builtins.list[SandboxInfo]:
        """As `list`, in a thread."""
        return await asyncio.to_thread(Life.list)

    @staticmethod
    def discard(id_or_name: str) -> None:
        """Removes a kept sandbox with its private workspace, whether it runs or has stopped.

        Raises:
            SandboxError: If there is none.
        """
        _kept_server.run_verb("rm", "--force", "--", check_text("id_or_name", id_or_name))

    @staticmethod
    async def adiscard(id_or_name: str) -> None:
        """As `discard`, in a thread."""
        await asyncio.to_thread(Life.discard, id_or_name)

    # Within the package.

    def _begin(self, words: tuple[bytes, ...], keep: Keep | None, *, asks: bool) -> None:
        """Starts it."""
        if keep is None:
            server, created = create(words, asks=asks)
            self._adopt(server, created, kept=False, name="")
        else:
            server, created = create_kept(words, keep, asks=asks)
            name = keep.name
            if name is None and keep.resume is not None:  # it still has the one that it had
                name = _kept_server.find(created.place.id).name
            self._adopt(server, created, kept=True, name=name or "")

    def _adopt(self, server: Server, created: Created, *, kept: bool, name: str) -> None:
        self._serve = server
        self._place = created.place
        self._degraded = created.degraded
        self._published = created.published
        self._kept = kept
        self._name = name
        self._closed = False
        if kept:
            self._finalizer = weakref.finalize(self, server.shut_down)
        else:
            self._finalizer = weakref.finalize(self, server.close_in_background, self._place.id)
        # At exit the server's end takes all sandboxes at once, or lets go of it.
        self._finalizer.atexit = False

    def _let_go(self) -> bool:
        """Closes this object; whether the sandbox is still to be ended."""
        if self._finalizer.detach() is None:
            return False
        self._closed = True
        if self._kept:
            self._serve.shut_down()
        return not self._kept

    def _check_kept(self, method: str) -> None:
        self._check_open()
        if not self._kept:
            msg = f"{method}() is for a sandbox that is kept (keep=True); close() ends this one"
            raise SandboxError(msg)
